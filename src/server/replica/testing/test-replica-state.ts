import { TestReports } from '../../../control/testing/index.ts';
import type { Deviation, ReplicaState, ServedRevision } from '../replica-state.ts';

/** A replica's state, set by a test. */
export class TestReplicaState extends TestReports implements ReplicaState {
  servedRevisions: ServedRevision[] = [];
  deviating: Deviation[] = [];

  served(): Iterable<ServedRevision> {
    return this.servedRevisions;
  }

  deviations(): Iterable<Deviation> {
    return this.deviating;
  }
}
