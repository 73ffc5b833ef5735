package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// A version of a worker deployment of Temporal that becomes the current one and runs workflows, which never end.
type temporalFilling struct {
	Address    string `json:"address"`
	Queue      string `json:"queue"`
	Deployment string `json:"deployment"`
	Build      string `json:"build"`
	Workflows  int    `json:"workflows"`
}

func (t *temporalFilling) fill(ctx context.Context) error {
	// Standard output has the answers of this program.
	logger := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	connection, err := client.DialContext(ctx, client.Options{HostPort: t.Address, Logger: logger})
	if err != nil {
		return err
	}
	defer connection.Close()
	version := worker.WorkerDeploymentVersion{DeploymentName: t.Deployment, BuildID: t.Build}
	started := worker.New(connection, t.Queue, worker.Options{DeploymentOptions: worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   version,
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
	}})
	endless := func(ctx workflow.Context) error { return workflow.Await(ctx, func() bool { return false }) }
	started.RegisterWorkflowWithOptions(endless, workflow.RegisterOptions{Name: "Endless"})
	if err := started.Start(); err != nil {
		return err
	}
	defer started.Stop()
	deployment := connection.WorkerDeploymentClient().GetHandle(t.Deployment)
	current := client.WorkerDeploymentSetCurrentVersionOptions{BuildID: t.Build, IgnoreMissingTaskQueues: true}
	// The server knows a version a moment after its first poll.
	err = until(ctx, func() error {
		_, err := deployment.SetCurrentVersion(ctx, current)
		return err
	})
	if err != nil {
		return err
	}
	for range t.Workflows {
		_, err := connection.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: t.Queue}, "Endless")
		if err != nil {
			return err
		}
	}
	query := fmt.Sprintf("TaskQueue = '%s' AND TemporalWorkerDeploymentVersion = '%s:%s'", t.Queue, t.Deployment, t.Build)
	return until(ctx, func() error {
		found, err := connection.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err == nil && found.GetCount() < int64(t.Workflows) {
			err = fmt.Errorf("%d of %d workflows have begun", found.GetCount(), t.Workflows)
		}
		return err
	})
}

// Tries until it succeeds; the last error if the time is over.
func until(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
