package broken

import "slices"

// Drivers returns those from which the laws were made, in their order.
func Drivers() []Driver {
	var all []Driver
	for _, some := range [][]Driver{queueing, tokens, waiting, liveness, naming, showing, hiding, kinds, ending, sharing} {
		all = append(all, some...)
	}
	return all
}

// more are faults thought up from the contract's words alone, without a look at how the laws try
// them. Those without a law are not noticed by any.
func more() []Driver {
	var all []Driver
	for _, some := range [][]Driver{
		moreNaming, moreTokens, moreSharing, moreSessions, moreRenewing, moreClosing, moreBeside, moreBreaking, moreWaiting,
		moreReleasing, moreLosing, moreLosses, moreShowing, moreLines, moreWatching, moreErrors, moreTraits, moreUnderWay, moreOfKinds,
		moreSettling, moreSwapping,
	} {
		all = append(all, some...)
	}
	return all
}

// noticed returns those of more that a law convicts.
func noticed() []Driver {
	return slices.DeleteFunc(more(), func(d Driver) bool { return d.Law == "" })
}
