// Stands for the seal by keys of a cloud, which the tests do not need and whose libraries take minutes to build.
package gcpckms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

const (
	EnvGcpCkmsWrapperCredsPath   = "EnvGcpCkmsWrapperCredsPath"
	EnvGcpCkmsWrapperCryptoKey   = "EnvGcpCkmsWrapperCryptoKey"
	EnvGcpCkmsWrapperKeyRing     = "EnvGcpCkmsWrapperKeyRing"
	EnvGcpCkmsWrapperLocation    = "EnvGcpCkmsWrapperLocation"
	EnvGcpCkmsWrapperProject     = "EnvGcpCkmsWrapperProject"
	EnvVaultGcpCkmsSealCryptoKey = "EnvVaultGcpCkmsSealCryptoKey"
	EnvVaultGcpCkmsSealKeyRing   = "EnvVaultGcpCkmsSealKeyRing"
)

type Wrapper struct{ wrapping.Wrapper }

func NewWrapper() *Wrapper { return &Wrapper{} }
