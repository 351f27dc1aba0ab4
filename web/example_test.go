package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// The locks of a program, in its own server.
func ExampleNew() {
	store := memlock.New()
	client, err := interlock.New(store, &interlock.Options{Owner: "till 3"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	locks, err := web.New([]web.Store{{Name: "main", URL: "mem:", Driver: store}}, &web.Options{Prefix: "/locks"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	mux := http.NewServeMux()
	mux.Handle("/locks/", locks)
	server := httptest.NewServer(mux)
	defer server.Close()

	err = client.Mutex("coupons/42").Do(context.Background(), func(context.Context) error {
		answer, err := http.Get(server.URL + "/locks/v1/line?name=coupons/42")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var line struct {
			Claims []struct {
				State string
				Owner struct{ Name string }
			}
		}
		err = json.NewDecoder(answer.Body).Decode(&line)
		fmt.Println(line.Claims[0].Owner.Name, line.Claims[0].State, "it")
		return err
	})
	fmt.Println(err)
	// Output:
	// till 3 holds it
	// <nil>
}
