//! Other metrics API servers behind ours: several providers behind one APIService.
