import assert from 'node:assert/strict';
import type { Outcome } from './kubectl-target.ts';

/** An intended difference of an embedded cluster from kube-apiserver. */
export interface Difference {
  /** The sentence in docs/gateway.md. */
  readonly reason: string;
  /** Further checks of the outcomes. Default: none. */
  readonly check?: (embedded: Outcome | undefined, real: Outcome | undefined) => void;
}

/** The differences of the transcript, by name. docs/gateway.md lists them for readers. */
export const DIFFERENCES: Readonly<Record<string, Difference>> = {
  version: {
    reason: 'The version of the server has a suffix: `v1.34.4+portcullis`.',
    check: (embedded) => assert.match(embedded?.stdout ?? '', /^Server Version: v1\.34\.4\+portcullis$/m),
  },
  'field-order': {
    reason: 'The fields of JSON objects have another order, which has no meaning; kubectl sorts them itself.',
    check: (embedded, real) => assert.deepEqual(JSON.parse(quoted(embedded?.stdout)), JSON.parse(quoted(real?.stdout))),
  },
  autoscaling: {
    reason: '`kubectl autoscale` before 1.34 needs `autoscaling/v1`; the embedded cluster has `autoscaling/v2` only.',
    check: (embedded) => assert.match(embedded?.stderr ?? '', /could not find the requested resource/),
  },
  'patch-types': {
    reason: 'The error message for a patch with a value of the wrong type does not name Go types.',
    check: (embedded, real) => {
      assert.deepEqual([embedded?.code, embedded?.stdout], [real?.code, real?.stdout]);
      assert.match(embedded?.stderr ?? '', /cannot be handled as a|[Ii]nvalid/);
    },
  },
  'patch-shown': {
    reason: 'Error messages about a patch show the patch as it was sent.',
    check: (embedded, real) => {
      const end = /": strict decoding error: .*$/m;
      assert.equal(end.exec(embedded?.stderr ?? '')?.[0], end.exec(real?.stderr ?? '')?.[0]);
      assert.equal(embedded?.code, real?.code);
    },
  },
  'node-taint': {
    reason: 'New nodes have no `not-ready` taint, because no controller would remove it.',
    check: (embedded) => assert.doesNotMatch(embedded?.stdout ?? '', /not-ready/),
  },
  groups: {
    reason: 'Only the API groups of [kinds that an embedded cluster serves](embedded-kinds.md) exist.',
    check: (embedded, real) => {
      const all = new Set(real?.stdout.split('\n'));
      assert.deepEqual(
        embedded?.stdout.split('\n').filter((line) => !all.has(line)),
        [],
      );
    },
  },
};

/** Quotes the placeholder of a version, which is a number before normalization, so that the text is JSON. */
function quoted(text = ''): string {
  return text.replaceAll('<version>', '"<version>"');
}
