// Stands for the seal by keys of a cloud, which the tests do not need and whose libraries take minutes to build.
package azurekeyvault

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

const (
	EnvAzureKeyVaultWrapperKeyName   = "EnvAzureKeyVaultWrapperKeyName"
	EnvAzureKeyVaultWrapperVaultName = "EnvAzureKeyVaultWrapperVaultName"
	EnvVaultAzureKeyVaultKeyName     = "EnvVaultAzureKeyVaultKeyName"
	EnvVaultAzureKeyVaultVaultName   = "EnvVaultAzureKeyVaultVaultName"
)

type Wrapper struct{ wrapping.Wrapper }

func NewWrapper() *Wrapper { return &Wrapper{} }

func WithDisallowEnvVars(bool) wrapping.Option { return nil }
