import { TestReports } from '../../../control/testing/index.ts';
import type { Deviation, ReplicaView, ServedRevision } from '../replica-view.ts';

/** A replica's state, set by a test. */
export class TestView extends TestReports implements ReplicaView {
  servedRevisions: ServedRevision[] = [];
  deviating: Deviation[] = [];

  served(): Iterable<ServedRevision> {
    return this.servedRevisions;
  }

  deviations(): Iterable<Deviation> {
    return this.deviating;
  }
}
