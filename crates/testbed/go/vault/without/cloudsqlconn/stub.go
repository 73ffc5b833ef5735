// Stands for databases of a cloud, which the tests do not need and whose libraries take minutes to build.
package cloudsqlconn

type Option struct{}

type DialOption struct{}

func WithIAMAuthN() Option { return Option{} }

func WithCredentialsJSON([]byte) Option { return Option{} }

func WithDefaultDialOptions(...DialOption) Option { return Option{} }

func WithPrivateIP() DialOption { return DialOption{} }

func WithPSC() DialOption { return DialOption{} }
