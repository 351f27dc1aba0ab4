package main

import "time"

// record is a run for programs.
type record struct {
	Machine machine     `json:"machine"`
	Started time.Time   `json:"started"`
	Short   bool        `json:"short"`
	Rows    []rowRecord `json:"rows"`
}

type rowRecord struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Options     string            `json:"options"`
	Repetitions int               `json:"repetitions"`
	Contenders  []contenderRecord `json:"contenders"`
	Goals       []goalRecord      `json:"goals,omitempty"`
}

type contenderRecord struct {
	Name    string            `json:"name"`
	Role    role              `json:"role"`
	Figures map[metric]spread `json:"figures,omitempty"`
	Failure string            `json:"failure,omitempty"`
}

type goalRecord struct {
	Contender string   `json:"contender"`
	Metric    metric   `json:"metric"`
	Sign      sign     `json:"sign"`
	Goal      float64  `json:"goal"`
	Stretch   float64  `json:"stretch,omitempty"`
	Than      string   `json:"than,omitempty"`
	Value     *float64 `json:"value"` // null = not measured
	Met       bool     `json:"met"`
}

// recordRow is printRow for programs.
func recordRow(res result, judge bool) rowRecord {
	r := res.row
	out := rowRecord{Name: r.name, Title: r.title, Options: r.options, Repetitions: r.reps}
	for i, c := range r.contenders {
		line := contenderRecord{Name: c.name, Role: c.role, Figures: res.spreads[i]}
		if err := res.failures[c.name]; err != nil {
			line.Failure = err.Error()
		}
		out.Contenders = append(out.Contenders, line)
	}
	if !judge {
		return out
	}
	for _, v := range res.verdicts() {
		g := v.goal
		line := goalRecord{
			Contender: g.who, Metric: g.metric, Sign: g.sign, Goal: g.factor,
			Stretch: g.stretch, Than: g.than, Met: v.met(),
		}
		if v.known {
			line.Value = &v.value
		}
		out.Goals = append(out.Goals, line)
	}
	return out
}
