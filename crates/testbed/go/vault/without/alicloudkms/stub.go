// Stands for the seal by keys of a cloud, which the tests do not need and whose libraries take minutes to build.
package alicloudkms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

const (
	EnvAliCloudKmsWrapperKeyId   = "EnvAliCloudKmsWrapperKeyId"
	EnvVaultAliCloudKmsSealKeyId = "EnvVaultAliCloudKmsSealKeyId"
)

type Wrapper struct{ wrapping.Wrapper }

func NewWrapper() *Wrapper { return &Wrapper{} }
