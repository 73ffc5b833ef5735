{{/* A dashboard of Grafana as JSON, from a file of files/dashboards: panels in three columns, below the text if there is one. */}}
{{- define "plimsoll.dashboard" -}}
{{- $source := dict "type" "prometheus" "uid" "${datasource}" }}
{{- $top := 0 }}
{{- $panels := list }}
{{- with .text }}
{{- $top = 4 }}
{{- $panels = append $panels (dict "id" 1 "type" "text" "title" "" "gridPos" (dict "h" 4 "w" 24 "x" 0 "y" 0) "options" (dict "mode" "markdown" "content" .)) }}
{{- end }}
{{- range $index, $panel := .panels }}
{{- $targets := list }}
{{- range $number, $query := $panel.queries }}
{{- $targets = append $targets (dict "refId" (printf "%c" (add 65 $number)) "expr" $query.expr "legendFormat" $query.legend) }}
{{- end }}
{{- $place := dict "h" 8 "w" 8 "x" (mul 8 (mod $index 3)) "y" (add $top (mul 8 (div $index 3))) }}
{{- $field := dict "defaults" (dict "unit" (default "short" $panel.unit) "min" 0) "overrides" list }}
{{- $panels = append $panels (dict "id" (add 2 $index) "type" "timeseries" "title" $panel.title "description" (default "" $panel.description) "gridPos" $place "datasource" $source "fieldConfig" $field "targets" $targets) }}
{{- end }}
{{- $datasource := dict "name" "datasource" "type" "datasource" "query" "prometheus" "label" "Data source" }}
{{- $job := dict "name" "job" "type" "query" "label" "Job" "datasource" $source "query" (printf "label_values(%s, job)" .job) "refresh" 2 "includeAll" true "multi" true "current" (dict "text" "All" "value" "$__all") }}
{{- dict "title" .title "uid" .uid "schemaVersion" 39 "tags" (list "autoscaling" "plimsoll") "editable" true "refresh" "30s" "time" (dict "from" "now-3h" "to" "now") "templating" (dict "list" (list $datasource $job)) "panels" $panels | toPrettyJson }}
{{- end }}
