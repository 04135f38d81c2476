// Go's net/http. Usage: push_pop <address> <queue>
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	address, queue := os.Args[1], os.Args[2]
	body := fmt.Sprintf(`{"items": [{"queue": %q, "payload": "from %s"}]}`, queue, queue)
	pushed, err := http.Post("http://"+address+"/api/v1/push", "application/json", strings.NewReader(body))
	fmt.Fprintln(os.Stderr, text(pushed, err, http.StatusCreated))
	popped, err := http.Get("http://" + address + "/api/v1/pop/queue/" + queue + "?autoAck=true")
	fmt.Println(text(popped, err, http.StatusOK))
}

func text(answer *http.Response, err error, expected int) string {
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != expected {
		log.Fatal(answer.Status, " ", string(body), err)
	}
	return string(body)
}
