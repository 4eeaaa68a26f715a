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
  'member-order': {
    reason: 'The members of JSON objects come in another order; it has no meaning, and kubectl sorts them itself.',
    check: (embedded, real) => assert.deepEqual(JSON.parse(quoted(embedded?.stdout)), JSON.parse(quoted(real?.stdout))),
  },
  autoscaling: {
    reason: '`kubectl autoscale` before 1.34 needs `autoscaling/v1`; autoscalers are applied as `autoscaling/v2`.',
    check: (embedded) => assert.match(embedded?.stderr ?? '', /could not find the requested resource/),
  },
  'patch-types': {
    reason:
      'A patch that gives a field a value of the wrong type is refused in words of our own, where Kubernetes names types of Go.',
    check: (embedded, real) => {
      assert.deepEqual([embedded?.code, embedded?.stdout], [real?.code, real?.stdout]);
      assert.match(embedded?.stderr ?? '', /cannot be handled as a|[Ii]nvalid/);
    },
  },
  'patch-shown': {
    reason:
      'Messages about a patch show it as it was sent, where Kubernetes shows what is left of it once it was merged.',
    check: (embedded, real) => {
      const end = /": strict decoding error: .*$/m;
      assert.equal(end.exec(embedded?.stderr ?? '')?.[0], end.exec(real?.stderr ?? '')?.[0]);
      assert.equal(embedded?.code, real?.code);
    },
  },
  'node-taint': {
    reason: 'New nodes have no taint that says that they are not ready: nothing would take it away.',
    check: (embedded) => assert.doesNotMatch(embedded?.stdout ?? '', /not-ready/),
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

/** Places of versions are no JSON. */
function quoted(text = ''): string {
  return text.replaceAll('<version>', '"<version>"');
}
