// Vault's own core, storage of keys and values, kubernetes login and HTTP API, and nothing else of it: the whole program
// needs the libraries of every cloud and takes a quarter of an hour to build. Everything is in memory; it starts sealed
// and not initialized, as every Vault does.
package main

import (
	"flag"
	"log"
	"net/http"
	"os"

	"github.com/hashicorp/go-hclog"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// What can be mounted.
var logins = map[string]logical.Factory{"kubernetes": kubernetes.Factory}
var stores = map[string]logical.Factory{"kv": kv.Factory}

type registry struct{}

func (registry) of(kind consts.PluginType) map[string]logical.Factory {
	switch kind {
	case consts.PluginTypeCredential:
		return logins
	case consts.PluginTypeSecrets:
		return stores
	}
	return nil
}

func (r registry) Contains(name string, kind consts.PluginType) bool {
	_, ok := r.of(kind)[name]
	return ok
}

func (r registry) Get(name string, kind consts.PluginType) (func() (interface{}, error), bool) {
	factory, ok := r.of(kind)[name]
	return func() (interface{}, error) { return factory, nil }, ok
}

func (r registry) Keys(kind consts.PluginType) []string {
	var names []string
	for name := range r.of(kind) {
		names = append(names, name)
	}
	return names
}

func (r registry) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r.Contains(name, kind)
}

func (registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func main() {
	listen := flag.String("listen", "127.0.0.1:8200", "where to listen")
	secure := flag.String("listen-tls", "", "where to listen with TLS")
	certificate := flag.String("certificate", "", "certificate")
	key := flag.String("key", "", "its key")
	flag.Parse()

	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: os.Stderr})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		log.Fatal(err)
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		Logger:             logger,
		DisableMlock:       true,
		CredentialBackends: logins,
		LogicalBackends:    stores,
		BuiltinRegistry:    registry{},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{
		Core:           core,
		ListenerConfig: &configutil.Listener{},
	})
	if *secure != "" {
		go func() { log.Fatal(http.ListenAndServeTLS(*secure, *certificate, *key, handler)) }()
	}
	log.Fatal(http.ListenAndServe(*listen, handler))
}
