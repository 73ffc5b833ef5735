// Stands for the seal by keys of a cloud, which the tests do not need and whose libraries take minutes to build.
package ocikms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

const (
	EnvOciKmsWrapperCryptoEndpoint       = "EnvOciKmsWrapperCryptoEndpoint"
	EnvOciKmsWrapperKeyId                = "EnvOciKmsWrapperKeyId"
	EnvOciKmsWrapperManagementEndpoint   = "EnvOciKmsWrapperManagementEndpoint"
	EnvVaultOciKmsSealCryptoEndpoint     = "EnvVaultOciKmsSealCryptoEndpoint"
	EnvVaultOciKmsSealKeyId              = "EnvVaultOciKmsSealKeyId"
	EnvVaultOciKmsSealManagementEndpoint = "EnvVaultOciKmsSealManagementEndpoint"
	KmsConfigCryptoEndpoint              = "KmsConfigCryptoEndpoint"
	KmsConfigKeyId                       = "KmsConfigKeyId"
	KmsConfigManagementEndpoint          = "KmsConfigManagementEndpoint"
)

type Wrapper struct{ wrapping.Wrapper }

func NewWrapper() *Wrapper { return &Wrapper{} }
