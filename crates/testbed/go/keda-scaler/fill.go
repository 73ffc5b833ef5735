package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/IBM/sarama"
	gocql "github.com/apache/cassandra-gocql-driver/v2"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// What a source is to be filled with: one of the following.
type filling struct {
	// Text that is sent over TCP as it is; what is answered within a moment must not contain Refused.
	TCP *struct {
		Address string `json:"address"`
		Text    string `json:"text"`
		Refused string `json:"refused"`
	} `json:"tcp"`
	HTTP *struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	} `json:"http"`
	// Statements of a driver of database/sql: `mysql` or `pgx`.
	SQL *struct {
		Driver     string   `json:"driver"`
		Source     string   `json:"source"`
		Statements []string `json:"statements"`
	} `json:"sql"`
	CQL *struct {
		Address    string   `json:"address"`
		Username   string   `json:"username"`
		Password   string   `json:"password"`
		Statements []string `json:"statements"`
	} `json:"cql"`
	// A command in extended JSON.
	Mongo *struct {
		URL      string `json:"url"`
		Database string `json:"database"`
		Command  string `json:"command"`
	} `json:"mongo"`
	Kafka    *kafkaFilling    `json:"kafka"`
	Temporal *temporalFilling `json:"temporal"`
	// Something whose answer is not waited for.
	Later *filling `json:"later"`
	// A queue or a container of Azure Storage that is made or emptied, and gets so many messages or the blobs of these names.
	Azure *struct {
		Connection string   `json:"connection"`
		Queue      string   `json:"queue"`
		Messages   int      `json:"messages"`
		Container  string   `json:"container"`
		Blobs      []string `json:"blobs"`
	} `json:"azure"`
}

type kafkaFilling struct {
	Broker string `json:"broker"`
	// Without a topic, the broker only has to answer.
	Topic string `json:"topic"`
	// A new topic with so many partitions.
	Partitions int32 `json:"partitions"`
	// So many messages for each partition.
	Messages int `json:"messages"`
	// What this group has read of each partition.
	Group  string `json:"group"`
	Offset int64  `json:"offset"`
}

func fill(ctx context.Context, given filling) error {
	switch {
	case given.TCP != nil:
		return fillTCP(given.TCP.Address, given.TCP.Text, given.TCP.Refused)
	case given.HTTP != nil:
		body := strings.NewReader(given.HTTP.Body)
		return fillHTTP(ctx, given.HTTP.Method, given.HTTP.URL, given.HTTP.Headers, body)
	case given.SQL != nil:
		return fillSQL(ctx, given.SQL.Driver, given.SQL.Source, given.SQL.Statements)
	case given.CQL != nil:
		login := gocql.PasswordAuthenticator{Username: given.CQL.Username, Password: given.CQL.Password}
		return fillCQL(ctx, given.CQL.Address, login, given.CQL.Statements)
	case given.Mongo != nil:
		return fillMongo(ctx, given.Mongo.URL, given.Mongo.Database, given.Mongo.Command)
	case given.Later != nil:
		go func() { _ = fill(context.Background(), *given.Later) }()
		return nil
	case given.Kafka != nil:
		return given.Kafka.fill()
	case given.Temporal != nil:
		return given.Temporal.fill(ctx)
	case given.Azure != nil && given.Azure.Queue != "":
		return fillQueue(ctx, given.Azure.Connection, given.Azure.Queue, given.Azure.Messages)
	case given.Azure != nil:
		return fillContainer(ctx, given.Azure.Connection, given.Azure.Container, given.Azure.Blobs)
	}
	return errors.New("nothing to fill is named")
}

func fillTCP(address, text, refused string) error {
	connection, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	defer connection.Close()
	if _, err := connection.Write([]byte(text)); err != nil {
		return err
	}
	var said strings.Builder
	piece := make([]byte, 1<<16)
	for {
		_ = connection.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		count, err := connection.Read(piece)
		said.Write(piece[:count])
		if err != nil {
			break
		}
	}
	if refused != "" && strings.Contains(said.String(), refused) {
		return fmt.Errorf("%s said %q", address, said.String())
	}
	return nil
}

func fillHTTP(ctx context.Context, method, url string, headers map[string]string, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, said)
	}
	return nil
}

func fillSQL(ctx context.Context, driver, source string, statements []string) error {
	database, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer database.Close()
	for _, statement := range statements {
		if _, err := database.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func fillCQL(ctx context.Context, address string, login gocql.Authenticator, statements []string) error {
	cluster := gocql.NewCluster(address)
	cluster.Authenticator = login
	cluster.Timeout = 30 * time.Second
	cluster.ConnectTimeout = 5 * time.Second
	cluster.DisableInitialHostLookup = true
	session, err := cluster.CreateSession()
	if err != nil {
		return err
	}
	defer session.Close()
	for _, statement := range statements {
		if err := session.Query(statement).ExecContext(ctx); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func fillMongo(ctx context.Context, url, database, text string) error {
	var command bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &command); err != nil {
		return err
	}
	client, err := mongo.Connect(options.Client().ApplyURI(url))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(ctx) }()
	return client.Database(database).RunCommand(ctx, command).Err()
}

func (k *kafkaFilling) fill() error {
	settings := sarama.NewConfig()
	settings.Version = sarama.V2_8_0_0
	settings.Producer.Return.Successes = true
	settings.Producer.Partitioner = sarama.NewManualPartitioner
	client, err := sarama.NewClient([]string{k.Broker}, settings)
	if err != nil {
		return err
	}
	defer client.Close()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	if k.Topic == "" {
		return nil
	}
	if k.Partitions > 0 {
		details := &sarama.TopicDetail{NumPartitions: k.Partitions, ReplicationFactor: 1}
		return admin.CreateTopic(k.Topic, details, false)
	}
	partitions, err := client.Partitions(k.Topic)
	if err != nil {
		return err
	}
	if k.Messages > 0 {
		producer, err := sarama.NewSyncProducerFromClient(client)
		if err != nil {
			return err
		}
		for _, partition := range partitions {
			for range k.Messages {
				message := &sarama.ProducerMessage{Topic: k.Topic, Partition: partition, Value: sarama.StringEncoder("x")}
				if _, _, err := producer.SendMessage(message); err != nil {
					return err
				}
			}
		}
	}
	if k.Group == "" {
		return nil
	}
	manager, err := sarama.NewOffsetManagerFromClient(k.Group, client)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		offsets, err := manager.ManagePartition(k.Topic, partition)
		if err != nil {
			return err
		}
		offsets.MarkOffset(k.Offset, "")
		// A smaller offset than the committed one.
		offsets.ResetOffset(k.Offset, "")
		offsets.AsyncClose()
	}
	manager.Commit()
	return manager.Close()
}

func fillQueue(ctx context.Context, connection, name string, messages int) error {
	service, err := azqueue.NewServiceClientFromConnectionString(connection, nil)
	if err != nil {
		return err
	}
	queue := service.NewQueueClient(name)
	if _, err := queue.Create(ctx, nil); err != nil {
		return err
	}
	if _, err := queue.ClearMessages(ctx, nil); err != nil {
		return err
	}
	for range messages {
		if _, err := queue.EnqueueMessage(ctx, "x", nil); err != nil {
			return err
		}
	}
	return nil
}

func fillContainer(ctx context.Context, connection, name string, blobs []string) error {
	service, err := azblob.NewClientFromConnectionString(connection, nil)
	if err != nil {
		return err
	}
	if _, err := service.CreateContainer(ctx, name, nil); err != nil && !strings.Contains(err.Error(), "ContainerAlreadyExists") {
		return err
	}
	for _, blob := range blobs {
		if _, err := service.UploadBuffer(ctx, name, blob, []byte("x"), nil); err != nil {
			return err
		}
	}
	return nil
}
