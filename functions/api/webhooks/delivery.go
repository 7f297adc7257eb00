package webhooks

import (
	"context"
	"net/http"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *Handler) deliveryRoutes(on rest.Resource) {
	rest.GetPage(on, "/{name}/deliveries", "listDeliveries", "List the deliveries to a webhook", s.listDeliveries,
		rest.Route{About: "Lists the jobs that deliver events, newest first. Other lists show them only with the " +
			"filter task=webhook."})
	rest.Post(on, "/{name}/test", "testWebhook", "Send a test event to a webhook", s.test, rest.Route{
		Status: http.StatusAccepted,
		About: "Makes a delivery of an event of the type punctual.webhook.test, also to a webhook that is disabled. " +
			"Not safe to repeat: each request sends an event.",
	})
	rest.Post(on, "/{name}/deliveries/{id}/redeliver", "redeliver", "Deliver an event once more", s.redeliver,
		rest.Route{
			Status: http.StatusAccepted,
			About: "Makes another delivery of the same event, with its id, to the address and with the headers that " +
				"the webhook has now. Not safe to repeat: each request makes a delivery.",
		})
}

// deliveryView shows a delivery as any job. It has a name of its own because lists of jobs have another form of page.
type deliveryView struct{ spec.JobView }

type deliveriesInput struct {
	rest.Named
	rest.Paging
	State string `query:"status" doc:"Filter: status"`
}

func (s *Handler) listDeliveries(
	ctx context.Context, who tenant.Identity, in *deliveriesInput, after string, most int,
) (page rest.Found[deliveryView], err error) {
	var wrong fault.Violations
	rest.FilterWord(&wrong, "status", in.State, rest.WordsOf(job.Statuses))
	if len(wrong) > 0 {
		return page, wrong
	}
	w, err := s.find(ctx, who.Tenant, in.Name)
	if err != nil {
		return page, err
	}
	for read := 0; read < show.MaxRead; read += store.ReadAtOnce {
		lot := min(most-len(page.Items), store.ReadAtOnce)
		found, more, err := s.Store.Deliveries(ctx, who.Tenant, w.Name, after, lot)
		if err != nil {
			return page, err
		}
		views, err := s.views(ctx, who.Tenant, found)
		if err != nil {
			return page, err
		}
		for _, v := range views {
			if in.State == "" || v.Status == job.Status(in.State) {
				page.Items = append(page.Items, deliveryView{v})
			}
		}
		if page.Next = ""; !more {
			return page, nil
		}
		after = found[len(found)-1].Position
		if page.Next = after; len(page.Items) == most {
			return page, nil
		}
	}
	return page, nil
}

// views shows the deliveries of some entries of the index. One that is forgotten is left out.
func (s *Handler) views(ctx context.Context, t tenant.ID, found []store.Delivery) ([]spec.JobView, error) {
	keys := make([]job.Key, len(found))
	for n, d := range found {
		keys[n] = d.Key
	}
	read, there, err := s.Read.Rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	var rows []job.Row
	for n, r := range read {
		if there[n] {
			rows = append(rows, r)
		}
	}
	shown, err := s.Read.Listed(ctx, t, rows)
	return spec.ViewJobs(shown), err
}

func (s *Handler) test(ctx context.Context, who tenant.Identity, in *rest.Named) (*spec.JobAnswer, error) {
	w, err := s.find(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	id, err := s.newID()
	if err != nil {
		return nil, err
	}
	row, err := s.Notify.Test(ctx, w, id)
	if err != nil {
		return nil, err
	}
	return s.accepted(ctx, row)
}

type deliveryInput struct {
	rest.Named
	ID string `path:"id"`
}

func (s *Handler) redeliver(ctx context.Context, who tenant.Identity, in *deliveryInput) (*spec.JobAnswer, error) {
	w, err := s.find(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	of, err := job.ParseID(in.ID)
	if err != nil {
		return nil, rest.NoSuch("delivery")
	}
	id, err := s.newID()
	if err != nil {
		return nil, err
	}
	row, err := s.Notify.Redeliver(ctx, w, of, id)
	if err != nil {
		return nil, rest.Absent(err, "delivery")
	}
	return s.accepted(ctx, row)
}

// accepted answers with a delivery that was made.
func (s *Handler) accepted(ctx context.Context, row job.Row) (*spec.JobAnswer, error) {
	a, err := s.AnswerJob(ctx, row, http.StatusAccepted)
	if err == nil {
		a.Location = "/v1/jobs/" + string(row.ID)
	}
	return a, err
}
