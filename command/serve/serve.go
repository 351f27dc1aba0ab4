//go:build unix

package serve

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/internal/serve"
)

func init() {
	cli.Serve = func(ctx context.Context, s *cli.Serving) error {
		err := serve.Run(ctx, (*serve.Options)(s))
		if errors.As(err, new(*serve.ConfigError)) {
			return cli.Usage(err)
		}
		return err
	}
}
