# The first process of a node: runs containerd, kube-proxy and kubelet until one of them ends.
#
#   $FOLDER   the folder of the node, with its configuration, which is complete when there is the file `configured`
#   $LOGS     where the logs go
#   $NAME     its name
#   $IMAGES   a folder of images: archives, or OCI layouts
set -eu
# What these programs leave in fixed places of the machine stays in this namespace.
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/kubelet "$FOLDER/log" "$FOLDER/kubelet"
mount --bind "$FOLDER/log" /var/log
# Sockets need short paths.
mount --bind "$FOLDER/kubelet" /run/kubelet

start() {
    log=$LOGS/$NAME-$1.log
    shift
    "$@" >"$log" 2>&1 &
}
fail() {
    echo "$NAME: $1"
    tail -n 20 "$log"
    exit 1
}

until [ -e "$FOLDER/configured" ]; do
    sleep 0.05
done
start containerd containerd --config "$FOLDER/containerd.toml"
containerd=$!
until ctr version >/dev/null 2>&1; do
    kill -0 "$containerd" 2>/dev/null || fail "containerd ended by itself"
    sleep 0.05
done
for image in "$IMAGES"/*; do
    if [ -d "$image" ]; then
        tar -C "$image" -c . | ctr --namespace k8s.io images import - >/dev/null
    else
        ctr --namespace k8s.io images import "$image" >/dev/null
    fi
done
start kube-proxy kube-proxy --config "$FOLDER/kube-proxy.yaml" --hostname-override "$NAME"
proxy=$!
start kubelet kubelet --config "$FOLDER/kubelet.yaml" --kubeconfig "$FOLDER/kubelet.kubeconfig" \
    --hostname-override "$NAME" --node-ip "$NODE_ADDRESS" --root-dir /run/kubelet --cert-dir /run/kubelet/pki
kubelet=$!
while :; do
    for pair in "containerd $containerd" "kube-proxy $proxy" "kubelet $kubelet"; do
        log=$LOGS/$NAME-${pair% *}.log
        kill -0 "${pair#* }" 2>/dev/null || fail "${pair% *} ended by itself"
    done
    sleep 1
done
