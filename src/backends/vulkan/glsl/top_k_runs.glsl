// Sorted runs of entries in the workspace, and what the dispatches that sort rows know: as SortNumbers of top_k.cc.
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Runs { Entry v[]; };
uint k() { return R.own[0]; }           // entries of a row that come out
uint width() { return R.own[1]; }       // elements of a row that an (outgoing) run was made of
uint runs() { return R.own[2]; }        // of a row, (outgoing)
uint most() { return R.own[3]; }        // entries of an (outgoing) run: the first of each row's lies `most() * runs()` apart
uint runs_from() { return R.own[4]; }   // where the incoming runs begin, in entries
uint runs_to() { return R.own[5]; }     // and the outgoing ones
