// Stands for the search for other servers in a cloud, which the tests do not need and whose libraries take minutes to build.
package discover

import (
	"errors"
	"log"
)

type Provider interface{}

type Discover struct{}

type Option func(*Discover) error

type Config map[string]string

var Providers = map[string]Provider{}

func New(...Option) (*Discover, error) { return &Discover{}, nil }

func WithProviders(map[string]Provider) Option { return nil }

func Parse(string) (Config, error) { return nil, errors.New("not here") }

func (Config) String() string { return "" }

func (*Discover) Addrs(string, *log.Logger) ([]string, error) { return nil, errors.New("not here") }
