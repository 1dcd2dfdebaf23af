{{- define "lagwise.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "lagwise.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "lagwise.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "lagwise.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "lagwise.selectorLabels" -}}
app.kubernetes.io/name: {{ include "lagwise.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lagwise.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "lagwise.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Not those of the selector: the pod of `helm test` is none of the service. */ -}}
{{- define "lagwise.testLabels" -}}
app.kubernetes.io/component: test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lagwise.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "lagwise.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "lagwise.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- /* Names of the service, and those that are given: `lagwise serve` answers under no other. */ -}}
{{- define "lagwise.hosts" -}}
{{- $name := include "lagwise.fullname" . }}
{{- $own := list $name }}
{{- range list "" ".svc" ".svc.cluster.local" }}
{{- $own = append $own (printf "%s.%s%s" $name $.Release.Namespace .) }}
{{- end }}
{{- concat $own (.Values.config.serve.hosts | default list) | uniq | toJson }}
{{- end }}

{{- define "lagwise.claimName" -}}
{{- .Values.persistence.existingClaim | default (include "lagwise.fullname" .) }}
{{- end }}

{{- /*
A map as TOML: its own values first, then its tables. toToml would write whole numbers as floats, which lagwise refuses.
JSON's texts, numbers, booleans and lists of them are TOML's, too.
*/ -}}
{{- define "lagwise.toml" -}}
{{- $path := .path }}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (include "lagwise.isListOfTables" $value)) }}
{{ toJson $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- $name := printf "%s%s%s" $path (ternary "." "" (ne $path "")) (toJson $key) }}
{{- if kindIs "map" $value }}

[{{ $name }}]
{{- include "lagwise.toml" (dict "path" $name "table" $value) }}
{{- else if include "lagwise.isListOfTables" $value }}
{{- range $value }}

[[{{ $name }}]]
{{- include "lagwise.toml" (dict "path" $name "table" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lagwise.isListOfTables" -}}
{{- if and (kindIs "slice" .) . }}{{ if kindIs "map" (first .) }}true{{ end }}{{ end }}
{{- end }}

{{- define "lagwise.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "lagwise.mounts" -}}
- name: config
  mountPath: /etc/lagwise
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- range .secrets }}
- name: {{ printf "secret-%s" . }}
  mountPath: {{ printf "/run/secrets/lagwise/%s" . }}
  readOnly: true
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Not empty if the tables are in an object store and not in a folder of the volume. */}}
{{- define "lagwise.inStore" -}}
{{- if regexMatch "^(s3|az|abfss?)://" .Values.config.tables.root -}}true{{- end -}}
{{- end -}}

{{- /*
Not empty if the driver waits as a standby while another one runs. With tables in a bucket a single pod does, too: the
pod of a node that was cut off may run beside its replacement, and each would fence the other.
*/ -}}
{{- define "lagwise.waits" -}}
{{- if or .Values.standby (include "lagwise.inStore" .) -}}true{{- end -}}
{{- end -}}
