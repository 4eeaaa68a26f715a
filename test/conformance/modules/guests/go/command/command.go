// Package command is the frame of a policy that is a WASI program.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/protocol"
)

// Policy is what differs between policies. S are its settings.
type Policy[S any] struct {
	// CheckSettings returns why the settings are not valid.
	CheckSettings func(settings S) error
	// Validate answers a request. An error rejects it.
	Validate func(request protocol.KubernetesAdmissionRequest, settings S) ([]byte, error)
}

// Main answers the call that the arguments and the standard input describe.
func Main[S any](policy Policy[S]) {
	answer, err := run(policy)
	if err == nil {
		_, err = os.Stdout.Write(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run[S any](policy Policy[S]) ([]byte, error) {
	if len(os.Args) != 2 {
		return nil, fmt.Errorf("expected one argument, got %d", len(os.Args)-1)
	}
	// The host appends its answers to the input after this end.
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, err
	}
	switch os.Args[1] {
	case "validate":
		return validate(policy, input)
	case "validate-settings":
		return validateSettings(policy, input)
	default:
		return nil, fmt.Errorf("expected validate or validate-settings, got %q", os.Args[1])
	}
}

func validate[S any](policy Policy[S], input []byte) ([]byte, error) {
	var request protocol.ValidationRequest
	if err := json.Unmarshal(input, &request); err != nil {
		return kubewarden.RejectRequest(kubewarden.Message(err.Error()), 400)
	}
	var settings S
	if err := json.Unmarshal(request.Settings, &settings); err != nil {
		return kubewarden.RejectRequest(kubewarden.Message(err.Error()), 400)
	}
	answer, err := policy.Validate(request.Request, settings)
	if err != nil {
		return kubewarden.RejectRequest(kubewarden.Message(err.Error()), kubewarden.NoCode)
	}
	return answer, nil
}

func validateSettings[S any](policy Policy[S], input []byte) ([]byte, error) {
	var settings S
	err := json.Unmarshal(input, &settings)
	if err == nil {
		err = policy.CheckSettings(settings)
	}
	if err != nil {
		return kubewarden.RejectSettings(kubewarden.Message(err.Error()))
	}
	return kubewarden.AcceptSettings()
}
