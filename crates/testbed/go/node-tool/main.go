// The program of the images that a node of the testbed runs besides ours:
//
//	node-tool                  waits for a signal, as the first process of each pod
//	node-tool serve ADDRESS    an HTTP server whose every answer takes some CPU time, as php-apache's does
//	node-tool load URL         asks for the URL again and again, each time after the answer
//	node-tool burn MILLICORES  uses that much CPU
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	switch {
	case len(os.Args) == 1:
		wait()
	case len(os.Args) == 3 && os.Args[1] == "serve":
		http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			work(5_000_000)
			fmt.Fprint(w, "OK!")
		})
		log.Fatal(http.ListenAndServe(os.Args[2], nil))
	case len(os.Args) == 3 && os.Args[1] == "load":
		load(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "burn":
		burn(os.Args[2])
	default:
		log.Fatalf("unknown arguments: %q", os.Args[1:])
	}
}

// As process 1 of a pod it reaps the processes that its containers leave behind.
func wait() {
	end, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(child, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-child:
			for pid, err := 1, error(nil); pid > 0 && err == nil; {
				pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}
}

func work(steps int) float64 {
	sum := 0.0001
	for range steps {
		sum += math.Sqrt(sum)
	}
	return sum
}

func load(url string) {
	// A new connection each time, so that the Service spreads the requests.
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		response, err := client.Get(url)
		if err != nil {
			log.Print(err)
			time.Sleep(time.Second)
			continue
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

func burn(text string) {
	millicores, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	for {
		begin := time.Now()
		for time.Since(begin) < time.Duration(millicores)*100*time.Microsecond {
			work(1_000)
		}
		time.Sleep(100*time.Millisecond - time.Since(begin))
	}
}
