# curl. Usage: push_pop.sh <address> <queue>
set -eu
curl -sS --fail-with-body "http://$1/api/v1/push" -H 'content-type: application/json' \
    -d "{\"items\": [{\"queue\": \"$2\", \"payload\": \"from $2\"}]}" >/dev/null
curl -sS --fail-with-body "http://$1/api/v1/pop/queue/$2?autoAck=true"
