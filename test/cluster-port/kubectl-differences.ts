import assert from 'node:assert/strict';
import type { Outcome } from './kubectl-target.ts';

/** Something that an embedded cluster does otherwise on purpose. */
export interface Difference {
  /** As docs/gateway.md says it. */
  readonly reason: string;
  /** What has to hold besides. Default: nothing. */
  readonly check?: (embedded: Outcome | undefined, real: Outcome | undefined) => void;
}

/** The differences of the transcript, by name. docs/gateway.md lists them for readers. */
export const DIFFERENCES: Readonly<Record<string, Difference>> = {
  version: {
    reason: 'The version of the server says that it is no Kubernetes: `v1.34.4+portcullis`.',
    check: (embedded) => assert.match(embedded?.stdout ?? '', /^Server Version: v1\.34\.4\+portcullis$/m),
  },
  groups: {
    reason: 'Only the groups of the kinds that an embedded cluster has are served.',
    check: (embedded, real) => {
      const all = new Set(real?.stdout.split('\n'));
      assert.deepEqual(
        embedded?.stdout.split('\n').filter((line) => !all.has(line)),
        [],
      );
    },
  },
};
