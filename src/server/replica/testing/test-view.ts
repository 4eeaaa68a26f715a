import { TestReports } from '../../../control/testing/index.ts';
import type { Deviation, ReplicaView, ServedRevision } from '../replica-view.ts';

/** What a replica says of itself, as a test sets it. */
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
