# Makes the namespaces of a node: network, mounts and processes, and a pair of network devices that leads to it. The namespaces
# vanish with the last process in them, however it ends; leave.sh removes the rest.
#
#   $HOST         a process in the network of the machine
#   $DEVICE       the machine's end of the pair
#   $HOST_ADDRESS, $NODE_ADDRESS   the addresses of both ends
#   $PODS         the addresses of the node's pods
#   $SERVICES     the addresses of Services if this node routes them for the machine, else empty
#   $CGROUP       the control group of its pods
set -eu
if [ -z "${TESTBED_INSIDE:-}" ]; then
    export TESTBED_INSIDE=1
    exec unshare --mount --net sh "$0"
fi
on_host() { nsenter --net="/proc/$HOST/ns/net" "$@"; }
# Left by a node whose supervisor was killed.
on_host ip link delete "$DEVICE" 2>/dev/null || true
ip link set lo up
ip link add node0 type veth peer name "$DEVICE" netns "$HOST"
on_host ip address add "$HOST_ADDRESS" peer "$NODE_ADDRESS" dev "$DEVICE"
on_host ip link set "$DEVICE" up
on_host sh -c "echo 1 >/proc/sys/net/ipv4/conf/$DEVICE/forwarding"
for addresses in $PODS $SERVICES; do
    on_host ip route replace "$addresses" via "$NODE_ADDRESS" dev "$DEVICE"
done
ip address add "$NODE_ADDRESS" peer "$HOST_ADDRESS" dev node0
ip link set node0 up
ip route add default via "$HOST_ADDRESS" dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

groups=/sys/fs/cgroup
if [ -e "$groups/cgroup.controllers" ]; then
    mkdir -p "$groups/$CGROUP"
    for controller in $(cat "$groups/cgroup.controllers"); do
        echo "+$controller" >"$groups/cgroup.subtree_control" || true
        echo "+$controller" >"$groups/$CGROUP/cgroup.subtree_control" || true
    done
else
    for group in "$groups"/*/; do
        [ -e "$group/cgroup.procs" ] || continue
        mkdir -p "$group/$CGROUP"
        # A new group of this controller is empty, and kubelet does not fill it.
        for file in cpuset.cpus cpuset.mems; do
            [ ! -e "$group/$file" ] || cat "$group/$file" >"$group/$CGROUP/$file"
        done
    done
fi
exec unshare --pid --fork --kill-child --mount-proc sh "${0%/*}/run.sh"
