// Stands for the seal by keys of a cloud, which the tests do not need and whose libraries take minutes to build.
package awskms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

const (
	EnvAwsKmsWrapperKeyId   = "EnvAwsKmsWrapperKeyId"
	EnvVaultAwsKmsSealKeyId = "EnvVaultAwsKmsSealKeyId"
)

type Wrapper struct{ wrapping.Wrapper }

func NewWrapper() *Wrapper { return &Wrapper{} }

func WithDisallowEnvVars(bool) wrapping.Option { return nil }

func WithLogger(any) wrapping.Option { return nil }
