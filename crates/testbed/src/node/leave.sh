# Removes what a node leaves on the machine when its processes have ended: its network device and its control groups.
#
#   $DEVICE, $CGROUP   as in enter.sh

# The device would vanish with the network of the node, but connections may keep that for minutes.
ip link delete "$DEVICE" 2>/dev/null

# The last processes of a group may still be ending.
attempts=100
while [ "$attempts" -gt 0 ]; do
    find /sys/fs/cgroup -depth -type d -path "*/$CGROUP*" -exec rmdir {} \; 2>/dev/null
    [ -n "$(find /sys/fs/cgroup -type d -name "$CGROUP" 2>/dev/null)" ] || break
    attempts=$((attempts - 1))
    sleep 0.1
done
