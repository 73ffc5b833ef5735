// Asks sources with KEDA's own scalers, and fills sources for that: one JSON request per line on standard input, one JSON answer per
// line on standard output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	v2 "k8s.io/api/autoscaling/v2"
	"k8s.io/client-go/tools/events"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// A trigger whose source is asked. Triggers of the same text share a scaler, as polls of one ScaledObject do.
type request struct {
	Type       string            `json:"type"`
	Metadata   map[string]string `json:"metadata"`
	Auth       map[string]string `json:"auth"`
	Env        map[string]string `json:"env"`
	MetricType string            `json:"metricType"`
	Identity   string            `json:"identity"`
	// If it is there, nothing is asked.
	Fill *filling `json:"fill"`
}

type answer struct {
	Metric string   `json:"metric,omitempty"`
	Values []string `json:"values,omitempty"`
	Active bool     `json:"active"`
	// Where it failed: "fill", "build" or "ask".
	Stage string `json:"stage,omitempty"`
	Error string `json:"error,omitempty"`
}

// With the deadline of KEDA's KEDA_HTTP_DEFAULT_TIMEOUT.
const httpTimeout = 3 * time.Second

// No source may keep a test waiting for longer.
const patience = 60 * time.Second

func config(asked request) *scalersconfig.ScalerConfig {
	metricType := v2.MetricTargetType(asked.MetricType)
	if metricType == "" {
		metricType = v2.AverageValueMetricType
	}
	return &scalersconfig.ScalerConfig{
		ScalableObjectName:      "so",
		ScalableObjectNamespace: "ns",
		ScalableObjectType:      "ScaledObject",
		ScaledObject:            &kedav1alpha1.ScaledObject{},
		GlobalHTTPTimeout:       httpTimeout,
		TriggerType:             asked.Type,
		TriggerMetadata:         asked.Metadata,
		AuthParams:              asked.Auth,
		ResolvedEnv:             asked.Env,
		PodIdentity:             kedav1alpha1.AuthPodIdentity{Provider: kedav1alpha1.PodIdentityProvider(asked.Identity)},
		TriggerUniqueKey:        "ScaledObject-ns-so-0",
		MetricType:              metricType,
		Recorder:                events.NewFakeRecorder(1000),
	}
}

func plain(build func(*scalersconfig.ScalerConfig) (scalers.Scaler, error)) builder {
	return func(_ context.Context, config *scalersconfig.ScalerConfig) (scalers.Scaler, error) {
		return build(config)
	}
}

func redis(streams, cluster, sentinel bool) builder {
	return func(ctx context.Context, config *scalersconfig.ScalerConfig) (scalers.Scaler, error) {
		if streams {
			return scalers.NewRedisStreamsScaler(ctx, cluster, sentinel, config)
		}
		return scalers.NewRedisScaler(ctx, cluster, sentinel, config)
	}
}

// The API server is asked only for the endpoints of Services.
func metricsAPI(_ context.Context, config *scalersconfig.ScalerConfig) (scalers.Scaler, error) {
	return scalers.NewMetricsAPIScaler(config, nil)
}

type builder func(context.Context, *scalersconfig.ScalerConfig) (scalers.Scaler, error)

// The types whose sources are not the cluster itself.
var builders = map[string]builder{
	"activemq":               plain(scalers.NewActiveMQScaler),
	"apache-kafka":           scalers.NewApacheKafkaScaler,
	"arangodb":               plain(scalers.NewArangoDBScaler),
	"artemis-queue":          plain(scalers.NewArtemisQueueScaler),
	"aws-cloudwatch":         scalers.NewAwsCloudwatchScaler,
	"aws-dynamodb":           scalers.NewAwsDynamoDBScaler,
	"aws-dynamodb-streams":   scalers.NewAwsDynamoDBStreamsScaler,
	"aws-kinesis-stream":     scalers.NewAwsKinesisStreamScaler,
	"aws-sqs-queue":          scalers.NewAwsSqsQueueScaler,
	"azure-blob":             plain(scalers.NewAzureBlobScaler),
	"azure-pipelines":        scalers.NewAzurePipelinesScaler,
	"azure-queue":            plain(scalers.NewAzureQueueScaler),
	"beanstalkd":             plain(scalers.NewBeanstalkdScaler),
	"cassandra":              plain(scalers.NewCassandraScaler),
	"clickhouse":             plain(scalers.NewClickHouseScaler),
	"couchdb":                scalers.NewCouchDBScaler,
	"dynatrace":              plain(scalers.NewDynatraceScaler),
	"elasticsearch":          plain(scalers.NewElasticsearchScaler),
	"etcd":                   plain(scalers.NewEtcdScaler),
	"external":               plain(scalers.NewExternalScaler),
	"forgejo-runner":         plain(scalers.NewForgejoRunnerScaler),
	"gcp-pubsub":             plain(scalers.NewPubSubScaler),
	"gcp-storage":            plain(scalers.NewGcsScaler),
	"github-runner":          plain(scalers.NewGitHubRunnerScaler),
	"graphite":               plain(scalers.NewGraphiteScaler),
	"ibmmq":                  plain(scalers.NewIBMMQScaler),
	"influxdb":               plain(scalers.NewInfluxDBScaler),
	"kafka":                  scalers.NewKafkaScaler,
	"loki":                   plain(scalers.NewLokiScaler),
	"metrics-api":            metricsAPI,
	"mongodb":                scalers.NewMongoDBScaler,
	"mysql":                  plain(scalers.NewMySQLScaler),
	"nats-jetstream":         plain(scalers.NewNATSJetStreamScaler),
	"nsq":                    plain(scalers.NewNSQScaler),
	"opensearch":             plain(scalers.NewOpensearchScaler),
	"openstack-metric":       scalers.NewOpenstackMetricScaler,
	"openstack-swift":        scalers.NewOpenstackSwiftScaler,
	"postgresql":             scalers.NewPostgreSQLScaler,
	"prometheus":             plain(scalers.NewPrometheusScaler),
	"pulsar":                 plain(scalers.NewPulsarScaler),
	"rabbitmq":               plain(scalers.NewRabbitMQScaler),
	"redis":                  redis(false, false, false),
	"redis-cluster":          redis(false, true, false),
	"redis-cluster-streams":  redis(true, true, false),
	"redis-sentinel":         redis(false, false, true),
	"redis-sentinel-streams": redis(true, false, true),
	"redis-streams":          redis(true, false, false),
	"selenium-grid":          plain(scalers.NewSeleniumGridScaler),
	"solace-event-queue":     plain(scalers.NewSolaceScaler),
	"solarwinds":             plain(scalers.NewSolarWindsScaler),
	"solr":                   plain(scalers.NewSolrScaler),
	"splunk":                 plain(scalers.NewSplunkScaler),
	"sumologic":              plain(scalers.NewSumologicScaler),
	"temporal":               scalers.NewTemporalScaler,
}

// The scalers that were built, by the text of their request.
type kept map[string]scalers.Scaler

func (k kept) drop(ctx context.Context, text string) {
	if scaler, found := k[text]; found {
		_ = scaler.Close(ctx)
		delete(k, text)
	}
}

// Asks once with the scaler that is there, and after an error once more with a new one, as KEDA's cache of scalers does.
func (k kept) answer(text string) answer {
	var asked request
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return answer{Stage: "build", Error: fmt.Sprintf("the request is not valid: %v", err)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if asked.Fill != nil {
		if err := fill(ctx, *asked.Fill); err != nil {
			return answer{Stage: "fill", Error: err.Error()}
		}
		return answer{}
	}
	build, known := builders[asked.Type]
	if !known {
		return answer{Stage: "build", Error: fmt.Sprintf("no scaler found for type: %s", asked.Type)}
	}
	if scaler, found := k[text]; found {
		if said := read(ctx, scaler); said.Error == "" {
			return said
		}
		k.drop(ctx, text)
	}
	// Some scalers keep the context that they are built with.
	scaler, err := build(context.Background(), config(asked))
	if err != nil {
		return answer{Stage: "build", Error: err.Error()}
	}
	k[text] = scaler
	return read(ctx, scaler)
}

func read(ctx context.Context, scaler scalers.Scaler) answer {
	// A scaler that gets the name from its source has none while the source does not answer.
	name := "s0-metric"
	if specs := scaler.GetMetricSpecForScaling(ctx); len(specs) > 0 && specs[0].External != nil {
		name = specs[0].External.Metric.Name
	}
	values, active, err := scaler.GetMetricsAndActivity(ctx, name)
	if err != nil {
		return answer{Metric: name, Stage: "ask", Error: err.Error()}
	}
	said := answer{Metric: name, Active: active}
	for _, value := range values {
		said.Values = append(said.Values, value.Value.String())
	}
	return said
}

func main() {
	logf.SetLogger(logr.Discard())
	scalersByText := kept{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	output := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := output.Encode(scalersByText.answer(lines.Text())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
