// Kinds reads one object of Kubernetes in YAML and fails at the first field that its operator does not know.
package main

import (
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = check(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(text []byte) error {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return err
	}
	switch object.APIVersion + " " + object.Kind {
	case "monitoring.coreos.com/v1 PrometheusRule":
		return yaml.UnmarshalStrict(text, &monitoring.PrometheusRule{})
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return yaml.UnmarshalStrict(text, &monitoring.ServiceMonitor{})
	}
	return fmt.Errorf("%s %s is of no operator that is known here", object.APIVersion, object.Kind)
}
