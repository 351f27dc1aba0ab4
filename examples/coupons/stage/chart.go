package stage

import (
	"fmt"
	"strings"
	"time"
)

// The measures of the chart.
const (
	chartWidth = 960
	margin     = 24
	barLeft    = 230 // where bars begin, right of their names
	barWidth   = 470 // of the longest; its text is to the right
	barHeight  = 26
	barStep    = 38
	laneLeft   = 90
	laneWidth  = chartWidth - laneLeft - margin
	laneHeight = 20
	laneStep   = 26
)

// SVG draws the report: a bar for each act, and the time line of those in which a holder was stopped.
func (r *Report) SVG() []byte {
	var s sheet
	title := fmt.Sprintf("%d coupons, %d buyers, %d shops", r.Coupons, r.Buyers, r.Servers)
	s.text("head", 20, "start", margin, 40, "What a lock is for, and a token")
	s.text("soft", 14, "end", chartWidth-margin, 40, title)
	y := r.bars(&s, 84) + 34
	var longest time.Duration // so that the time lines have one scale
	for _, a := range r.Acts {
		longest = max(longest, a.length())
	}
	for _, a := range r.Acts {
		if a.Stop != nil {
			y = a.timeline(&s, y, r.Servers, longest) + 36
		}
	}
	legend(&s, y)
	return s.finish(title, chartWidth, int(y)+30)
}

// bars draws how many each act has sold, and returns where they end.
func (r *Report) bars(s *sheet, y float64) float64 {
	most := r.Coupons
	for _, a := range r.Acts {
		most = max(most, a.Sold)
	}
	width := func(n int) float64 { return barWidth * float64(n) / float64(most) }
	top := y - 8
	for _, a := range r.Acts {
		there := min(a.Sold, a.Stock)
		line := y + barHeight*0.7
		s.text("", 14, "start", margin, line, fmt.Sprintf("%d  %s", a.Number, a.Title))
		s.rect("good", barLeft, y, width(there), barHeight)
		class, text := "", fmt.Sprintf("%d sold", a.Sold)
		switch {
		case a.Oversold > 0:
			s.rect("bad", barLeft+width(there), y, width(a.Oversold), barHeight)
			class = "wrong"
			text += fmt.Sprintf(", %d too many", a.Oversold)
		case a.Stop != nil && !a.Stop.Written:
			text += ", late write refused"
		}
		// Behind the line that says how many there are, which is in the way otherwise.
		s.text(class, 14, "start", barLeft+width(max(a.Sold, a.Stock))+10, line, text)
		y += barStep
	}
	x := barLeft + width(r.Coupons)
	s.path("line dash", "M%.1f %.1fV%.1f", x, top, y-4)
	s.text("soft", 12, "middle", x, top-5, fmt.Sprintf("there are %d", r.Coupons))
	return y
}

// length is how long the time line of an act has to be; 0 if it has none.
func (a *Act) length() time.Duration {
	if a.Stop == nil {
		return 0
	}
	end := max(time.Duration(a.Stop.Ended), time.Duration(a.Stop.Continued), time.Millisecond)
	for _, v := range a.visits {
		end = max(end, v.to.Sub(a.begun))
	}
	return end + end/50
}

// timeline draws a lane for each shop, from y downwards and up to end, and returns where it ends. The stopped shop is
// the first.
func (a *Act) timeline(s *sheet, y float64, shops int, end time.Duration) float64 {
	stop := a.Stop
	x := func(d time.Duration) float64 { return laneLeft + laneWidth*float64(d)/float64(end) }

	s.text("head", 14, "start", margin, y, fmt.Sprintf("Act %d: %s", a.Number, a.Title))
	top := y + 52
	lane := func(shop int) float64 { return top + float64(shop)*laneStep }
	bottom := lane(shops)
	for i := range shops {
		s.text("soft", 13, "start", margin, lane(i)+laneHeight*0.75, fmt.Sprintf("shop %d", i+1))
		s.rect("lane", laneLeft, lane(i), laneWidth, laneHeight)
	}
	for _, v := range a.visits {
		from, to, class := v.from.Sub(a.begun), v.to.Sub(a.begun), "good"
		switch {
		case v.buyer == stop.Buyer:
			to = min(to, time.Duration(stop.Stopped)) // what it did late is drawn as such
		case v.surplus:
			class = "bad"
		}
		s.rect(class, x(from), lane(v.shop), max(x(to)-x(from), 0.6), laneHeight)
	}
	stopped, continued := x(time.Duration(stop.Stopped)), x(time.Duration(stop.Continued))
	s.rect("stopped", stopped, lane(0), continued-stopped, laneHeight)

	moment(s, x(time.Duration(stop.Overtaken)), top-28, bottom, "", "its lease is over: "+stop.By+" goes on")
	late := x(time.Duration(stop.Ended))
	if stop.Written {
		moment(s, late, top-10, top, "wrong", fmt.Sprintf("late write: “%d left”", stop.Number-1))
		s.ring(late, top+laneHeight/2)
	} else {
		moment(s, late, top-10, top, "", "late write refused")
		s.cross(late, top+laneHeight/2)
	}
	step := step(end)
	for d := time.Duration(0); d <= end; d += step {
		s.path("line", "M%.1f %.1fv5", x(d), bottom)
		s.text("soft", 12, "middle", x(d), bottom+18, strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0")+" s")
	}
	return bottom + 18
}

// moment draws a line down from y at x, and says what happened there on the side where there is room.
func moment(s *sheet, x, y, bottom float64, class, text string) {
	s.path("line", "M%.1f %.1fV%.1f", x, y-10, bottom)
	if x > laneLeft+laneWidth*2/3 {
		s.text(class, 13, "end", x-6, y, text)
	} else {
		s.text(class, 13, "start", x+6, y, text)
	}
}

// step returns a round distance of ticks, so that there are ten at most.
func step(end time.Duration) time.Duration {
	for unit := 100 * time.Millisecond; ; unit *= 10 {
		for _, s := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if end/s < 10 {
				return s
			}
		}
	}
}

// legend says what the colours mean.
func legend(s *sheet, y float64) {
	s.rect("good", margin, y, 12, 12)
	s.text("soft", 12, "start", margin+18, y+11, "a coupon is sold")
	s.rect("bad", 170, y, 12, 12)
	s.text("soft", 12, "start", 188, y+11, "one that is not there")
	s.rect("stopped", 340, y, 24, 12)
	s.text("soft", 12, "start", 370, y+11, "the process is stopped")
	s.ring(530, y+6)
	s.text("soft", 12, "start", 542, y+11, "it writes late")
	s.cross(656, y+6)
	s.text("soft", 12, "start", 668, y+11, "its late write is refused")
}
