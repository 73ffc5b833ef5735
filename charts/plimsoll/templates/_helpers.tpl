{{- define "plimsoll.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Names do not contain the release's: the APIs below are registered once in a cluster. */}}
{{- define "plimsoll.controller" -}}
{{ ternary "plimsoll-shadow" "plimsoll-controller" (eq .Values.controller.mode "shadow") }}
{{- end }}

{{/* The service account and certificate of a role: those of the one process, where all roles share it. Arguments: root, name. */}}
{{- define "plimsoll.account" -}}
{{ ternary "plimsoll" .name .root.Values.singleProcess.enabled }}
{{- end }}

{{/* The entries of a map of the one process and of its roles, as YAML. Entries of the process come first; roles that differ are an error,
     because the pod would not have what one of them needs. Arguments: root, roles, path (such as serviceAccount.annotations). */}}
{{- define "plimsoll.merged" -}}
{{- $root := .root }}
{{- $path := .path }}
{{- $merged := dict }}
{{- range $role := prepend .roles "singleProcess" }}
{{- $entries := index $root.Values $role }}
{{- range splitList "." $path }}
{{- $entries = index $entries . | default dict }}
{{- end }}
{{- range $key, $value := $entries }}
{{- if not (hasKey $merged $key) }}
{{- $_ := set $merged $key (dict "role" $role "value" $value) }}
{{- else }}
{{- $first := get $merged $key }}
{{- if and (ne $first.role "singleProcess") (ne $first.value $value) }}
{{- fail (printf "%s.%s and %s.%s differ in %s, and one process has one: set it in singleProcess.%s" $first.role $path $role $path $key $path) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $values := dict }}
{{- range $key, $entry := $merged }}
{{- $_ := set $values $key $entry.value }}
{{- end }}
{{- toYaml $values }}
{{- end }}

{{/* "true" if the metrics server gets one of these flags by extraArgs: those of its own, and in one process those of all
     enabled roles. Arguments: root, flags. */}}
{{- define "plimsoll.metrics-flag" -}}
{{- $flags := .flags }}
{{- $arguments := .root.Values.metrics.extraArgs }}
{{- if .root.Values.singleProcess.enabled }}
{{- range list "singleProcess" "controller" "operator" }}
{{- $role := index $.root.Values . }}
{{- if $role.enabled }}
{{- $arguments = concat $arguments $role.extraArgs }}
{{- end }}
{{- end }}
{{- end }}
{{- range $arguments }}
{{- if has (splitList "=" . | first) $flags }}true{{ end }}
{{- end }}
{{- end }}

{{/* "true" if the metrics server registers external.metrics.k8s.io in the place of the operator. In one process it has the operator's metrics anyway. */}}
{{- define "plimsoll.fronts-operator" -}}
{{- with .Values }}
{{- if and .metrics.enabled .operator.enabled .metrics.prometheus.url .metrics.apiServices.external (not .operator.apiService) (not .singleProcess.enabled) }}true{{ end }}
{{- end }}
{{- end }}

{{/* "true" if the metrics server queries an operator in another process. An operator in the same process makes the flag superfluous. */}}
{{- define "plimsoll.asks-operator" -}}
{{- include "plimsoll.fronts-operator" . }}
{{- if and .Values.metrics.enabled (not (and .Values.singleProcess.enabled .Values.operator.enabled)) }}
{{- include "plimsoll.metrics-flag" (dict "root" . "flags" (list "--operator")) }}
{{- end }}
{{- end }}

{{/* The namespace of the Secrets of ClusterTriggerAuthentications: KEDA_CLUSTER_OBJECT_NAMESPACE of the operator, or that of the release. */}}
{{- define "plimsoll.cluster-objects" -}}
{{- $namespace := .Release.Namespace }}
{{- $env := .Values.operator.env }}
{{- if .Values.singleProcess.enabled }}
{{- $env = concat $env .Values.singleProcess.env }}
{{- end }}
{{- range $env }}
{{- if eq (get . "name" | toString) "KEDA_CLUSTER_OBJECT_NAMESPACE" }}
{{- $namespace = get . "value" | default $namespace }}
{{- end }}
{{- end }}
{{- $namespace }}
{{- end }}

{{/* Variables of a container, each name once: server-side apply refuses a list that has one twice. Of those with one name, the last one counts, as
     for the kubelet. Arguments: the variables. */}}
{{- define "plimsoll.variables" -}}
{{- $names := dict }}
{{- $kept := list }}
{{- range reverse . }}
{{- $name := get . "name" | toString }}
{{- if not (hasKey $names $name) }}
{{- $_ := set $names $name true }}
{{- $kept = prepend $kept . }}
{{- end }}
{{- end }}
{{- toYaml $kept }}
{{- end }}

{{- define "plimsoll.labels" -}}
app.kubernetes.io/part-of: plimsoll
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The Service of a role. Where all roles share a process, it leads to its pods, so that clients and APIServices keep its name.
     Arguments: root, name, ports. */}}
{{- define "plimsoll.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ .name }}
    {{- include "plimsoll.labels" .root | nindent 4 }}
spec:
  selector:
    app.kubernetes.io/name: {{ include "plimsoll.account" . }}
  ports:
  - {name: https, port: 443, targetPort: https, appProtocol: https}
  {{- range .ports }}
  - {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .name }}}
  {{- end }}
{{- end }}

{{/* The Deployment of a role, with its ServiceAccount, Service and PodDisruptionBudget; only the Service where all roles share a process.
     Arguments: root, name, role (values), component, args, port, ports, env, volumes, mounts. */}}
{{- define "plimsoll.workload" -}}
{{- $root := .root }}
{{- $name := .name }}
{{- if ne $name (include "plimsoll.account" .) }}
{{ include "plimsoll.service" . }}
{{- else }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ $name }}
    {{- include "plimsoll.labels" $root | nindent 4 }}
  {{- with .role.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ $name }}
    {{- include "plimsoll.labels" $root | nindent 4 }}
spec:
  replicas: {{ .replicas }}
  strategy:
    # The new pod is ready before the old one gives its lease back.
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ $name }}
        app.kubernetes.io/part-of: plimsoll
        {{- with .role.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .annotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .role.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      terminationGracePeriodSeconds: 30
      {{- with .role.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .role.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        # The image names a user by number. OpenShift gives pods users of its own, and refuses pods that name another one.
        runAsNonRoot: true
        seccompProfile: {type: RuntimeDefault}
      {{- with $root.Values.topologySpread.topologyKeys }}
      # Not topologySpreadConstraints: where nodes lack one of the labels, the scheduler ignores all of those.
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          {{- range . }}
          - weight: 100
            podAffinityTerm:
              topologyKey: {{ . }}
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: {{ $name }}
              # A rolling update spreads the new pods, wherever the old ones are.
              matchLabelKeys: [pod-template-hash]
          {{- end }}
      {{- end }}
      containers:
      - name: {{ .component }}
        image: {{ include "plimsoll.image" $root }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        args:
        {{- range concat .args .role.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        env:
        {{- $fields := list }}
        {{- /* The other replicas reach the leader at POD_IP. */}}
        {{- range list (list "POD_NAME" "metadata.name") (list "POD_NAMESPACE" "metadata.namespace") (list "POD_IP" "status.podIP") }}
        {{- $fields = append $fields (dict "name" (index . 0) "valueFrom" (dict "fieldRef" (dict "fieldPath" (index . 1)))) }}
        {{- end }}
        {{- include "plimsoll.variables" (concat $fields .env .role.env) | nindent 8 }}
        ports:
        - {name: https, containerPort: {{ .port }}}
        - {name: health, containerPort: 8081}
        {{- range .ports }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
        # Probes have a listener of their own, so that clients of the other port cannot make them fail.
        livenessProbe:
          httpGet: {path: /livez, port: health}
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet: {path: /readyz, port: health}
          periodSeconds: 5
          timeoutSeconds: 5
        # The server goes on until the nodes have stopped sending requests to this pod.
        lifecycle: {preStop: {sleep: {seconds: 5}}}
        resources:
          {{- toYaml .role.resources | nindent 10 }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        {{- with concat .mounts (.role.extraVolumeMounts | default list) | uniq }}
        volumeMounts:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- with concat .volumes (.role.extraVolumes | default list) | uniq }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
---
{{ include "plimsoll.service" . }}
{{- if $root.Values.podDisruptionBudgets.enabled }}
---
# maxUnavailable and not minAvailable: with one replica a drain must still be possible.
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "plimsoll.labels" $root | nindent 4 }}
spec:
  maxUnavailable: 1
  # A pod that is not ready serves nobody, so a drain need not wait for it.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
{{- end }}
{{- end }}
{{- end }}

{{/* An APIService. Arguments: root, name (service), group, version, priority, insecure. */}}
{{- define "plimsoll.apiservice" -}}
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: {{ .version }}.{{ .group }}
  labels:
    {{- include "plimsoll.labels" .root | nindent 4 }}
  {{- if and (eq .root.Values.certificates.mode "cert-manager") (not .insecure) }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .root.Release.Namespace }}/{{ include "plimsoll.account" . }}
  {{- end }}
spec:
  group: {{ .group }}
  version: {{ .version }}
  groupPriorityMinimum: 100
  versionPriority: {{ .priority }}
  service: {namespace: {{ .root.Release.Namespace }}, name: {{ .name }}, port: 443}
  {{- if .insecure }}
  # Shadow mode may write nothing, hence no caBundle either: each instance makes its own certificate.
  insecureSkipTLSVerify: true
  # Removes the one that active mode has written, with which the line above is refused.
  caBundle: ""
  {{- end }}
{{- end }}

{{/* A binding to a role for the service account of a role of Plimsoll.
     Arguments: root, kind, name, namespace (RoleBinding), roleKind, role, account. */}}
{{- define "plimsoll.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "plimsoll.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .roleKind }}
  name: {{ .role }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ .accountNamespace | default .root.Release.Namespace }}
{{- end }}

{{/* The CA of the API server's front proxy, without which no request through the aggregation layer is trusted. */}}
{{- define "plimsoll.authentication-reader" -}}
{{ include "plimsoll.binding" (dict "root" .root "kind" "RoleBinding" "name" (printf "%s-authentication-reader" .name) "namespace" "kube-system" "roleKind" "Role" "role" "extension-apiserver-authentication-reader" "account" (include "plimsoll.account" .)) }}
{{- end }}

{{/* TokenReview and SubjectAccessReview: who asks, and whether they may. */}}
{{- define "plimsoll.auth-delegator" -}}
{{ include "plimsoll.binding" (dict "root" .root "kind" "ClusterRoleBinding" "name" (printf "%s-auth-delegator" .name) "roleKind" "ClusterRole" "role" "system:auth-delegator" "account" (include "plimsoll.account" .)) }}
{{- end }}

{{/* A certificate from cert-manager. Arguments: root, name, secret, services. */}}
{{- define "plimsoll.certificate" -}}
{{- $root := .root }}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "plimsoll.labels" $root | nindent 4 }}
spec:
  secretName: {{ .secret }}
  dnsNames:
  {{- range .services }}
  - {{ . }}.{{ $root.Release.Namespace }}.svc
  - {{ . }}.{{ $root.Release.Namespace }}.svc.cluster.local
  {{- end }}
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  issuerRef:
    {{- if $root.Values.certificates.issuerRef }}
    {{- toYaml $root.Values.certificates.issuerRef | nindent 4 }}
    {{- else }}
    name: plimsoll
    {{- end }}
{{- end }}

{{/* The certificate of a role from cert-manager, or the permission to keep its own. Where all roles share a process, it has one certificate
     for the names of all Services. Arguments: root, name, secret, apiservices, readApiservices, webhook. */}}
{{- define "plimsoll.certificates" -}}
{{- $root := .root }}
{{- $account := include "plimsoll.account" . }}
{{- $secret := ternary .secret "plimsoll-certs" (eq .name $account) }}
{{- if eq $root.Values.certificates.mode "cert-manager" }}
{{- if eq .name $account }}
{{ include "plimsoll.certificate" (dict "root" $root "name" .name "secret" .secret "services" (list .name)) }}
{{- end }}
{{- else }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}-certificates
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "plimsoll.labels" $root | nindent 4 }}
rules:
# create cannot be limited to a name.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ $secret }}]
  verbs: [get, update]
---
{{ include "plimsoll.binding" (dict "root" $root "kind" "RoleBinding" "name" (printf "%s-certificates" .name) "namespace" $root.Release.Namespace "roleKind" "Role" "role" (printf "%s-certificates" .name) "account" $account) }}
---
# caBundle of the role's own APIServices{{ if .webhook }} and webhook{{ end }}.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}-certificates
  labels:
    {{- include "plimsoll.labels" $root | nindent 4 }}
rules:
- apiGroups: [apiregistration.k8s.io]
  resources: [apiservices]
  resourceNames:
  {{- range .apiservices }}
  - {{ . }}
  {{- end }}
  verbs: [get, patch]
{{- with .readApiservices }}
# These are patched only where the role serves them, but it reads them to find out whether they lead to it.
- apiGroups: [apiregistration.k8s.io]
  resources: [apiservices]
  resourceNames:
  {{- range . }}
  - {{ . }}
  {{- end }}
  verbs: [get]
{{- end }}
{{- with .webhook }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ . }}]
  verbs: [get, update]
{{- end }}
---
{{ include "plimsoll.binding" (dict "root" $root "kind" "ClusterRoleBinding" "name" (printf "%s-certificates" .name) "roleKind" "ClusterRole" "role" (printf "%s-certificates" .name) "account" $account) }}
{{- end }}
{{- end }}
