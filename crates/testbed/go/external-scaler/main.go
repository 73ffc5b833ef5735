// A scaler as its authors write them, with the published protocol in Go.
//
// What it answers stands in the trigger: `value`, `target` and `active`; without them it says 100 of 100, and active.
// A stream tells `true` whenever the control page /tell names its object (`namespace/name`), and ends after /end.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

type server struct {
	pb.UnimplementedExternalScalerServer
	mutex     sync.Mutex
	listeners map[string][]chan string
}

func number(object *pb.ScaledObjectRef, key string, otherwise float64) (float64, error) {
	text, found := object.GetScalerMetadata()[key]
	if !found {
		return otherwise, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, status.Errorf(codes.InvalidArgument, "%s is no number: %s", key, text)
	}
	return value, nil
}

func (s *server) IsActive(_ context.Context, object *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	return &pb.IsActiveResponse{Result: object.GetScalerMetadata()["active"] != "no"}, nil
}

func (s *server) GetMetricSpec(_ context.Context, object *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	target, err := number(object, "target", 100)
	if err != nil {
		return nil, err
	}
	spec := &pb.MetricSpec{MetricName: "test", TargetSize: int64(target), TargetSizeFloat: target}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{spec}}, nil
}

func (s *server) GetMetrics(_ context.Context, request *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	value, err := number(request.GetScaledObjectRef(), "value", 100)
	if err != nil {
		return nil, err
	}
	metric := &pb.MetricValue{MetricName: request.GetMetricName(), MetricValue: int64(value), MetricValueFloat: value}
	return &pb.GetMetricsResponse{MetricValues: []*pb.MetricValue{metric}}, nil
}

func (s *server) StreamIsActive(object *pb.ScaledObjectRef, stream pb.ExternalScaler_StreamIsActiveServer) error {
	if object.GetScalerMetadata()["stream"] == "none" {
		return status.Error(codes.Unimplemented, "method StreamIsActive not implemented")
	}
	name := object.GetNamespace() + "/" + object.GetName()
	told := make(chan string, 16)
	s.mutex.Lock()
	s.listeners[name] = append(s.listeners[name], told)
	s.mutex.Unlock()
	log.Printf("listening: %s", name)
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case word := <-told:
			if word == "end" {
				return nil
			}
			if err := stream.Send(&pb.IsActiveResponse{Result: true}); err != nil {
				return err
			}
		}
	}
}

// Obeys `GET /tell?object=ns/so` and `GET /end?object=ns/so`: how many streams there were to tell.
func (s *server) obey(word string) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		name := request.URL.Query().Get("object")
		s.mutex.Lock()
		defer s.mutex.Unlock()
		listeners := s.listeners[name]
		for _, told := range listeners {
			told <- word
		}
		if word == "end" {
			delete(s.listeners, name)
		}
		fmt.Fprint(answer, len(listeners))
	}
}

func main() {
	address := flag.String("listen", "127.0.0.1:50051", "where to listen")
	control := flag.String("control", "127.0.0.1:50052", "where to obey")
	certificate := flag.String("certificate", "", "certificate file, for TLS")
	key := flag.String("key", "", "its key file")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatalf("failed to listen: %v", err)
	}
	var options []grpc.ServerOption
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			log.Fatalf("failed to read the certificate: %v", err)
		}
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	}
	scaler := &server{listeners: map[string][]chan string{}}
	http.HandleFunc("/tell", scaler.obey("tell"))
	http.HandleFunc("/end", scaler.obey("end"))
	go func() { log.Fatal(http.ListenAndServe(*control, nil)) }()
	grpcServer := grpc.NewServer(options...)
	pb.RegisterExternalScalerServer(grpcServer, scaler)
	log.Printf("serving on %s", *address)
	if err := grpcServer.Serve(listener); err != nil {
		log.Fatalf("failed to serve: %v", err)
	}
}
