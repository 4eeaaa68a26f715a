// Writes to a real API server and their results, recorded by test/e2e/server-side-apply.full.test.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { applyMergePatch, type JsonObject, type JsonValue, type KubernetesObject } from '../../resources/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import type { ManagedWrite, MergedKind } from './merge-request.ts';
import { applyServerSide } from './server-side-apply.ts';
import { WIDGET } from './testing/widget.ts';
import { keepManagerTimes, trackUpdate } from './track-update.ts';

interface RecordedWrite {
  readonly manager: string;
  readonly subresource?: string;
  readonly apply?: { readonly applied: KubernetesObject; readonly force: boolean };
  readonly now: number;
  /** The stored object, as a merge patch of the previous one; absent when nothing changed. */
  readonly object?: JsonObject;
  /** The object before defaults and without managers: a merge patch of the stored one. */
  readonly applied?: JsonObject;
  readonly updated?: JsonObject;
  /** The server's error message. */
  readonly message?: string;
}

const recorded = JSON.parse(
  readFileSync(new URL('testing/recorded-writes.json', import.meta.url), 'utf8'),
) as readonly { readonly apiVersion: string; readonly kind: string; readonly writes: readonly RecordedWrite[] }[];

function patched(object: KubernetesObject | undefined, patch: JsonObject): KubernetesObject {
  return applyMergePatch((object ?? {}) as JsonObject, patch) as KubernetesObject;
}

/** Removes null fields, which a merge patch cannot express. */
function contentOf(object: KubernetesObject): unknown {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return JSON.parse(JSON.stringify({ ...object, metadata }, (_key, value: unknown) => value ?? undefined));
}

/** The managers as text, so that the order of fields is compared. */
function managersOf(object: KubernetesObject): string {
  const entries = (object.metadata.managedFields ?? []).map(
    ({ manager, operation, apiVersion, time, subresource, fieldsV1 }) =>
      JSON.stringify([manager, operation, apiVersion, time, subresource, fieldsV1]),
  );
  return entries.join('\n');
}

describe('writes that a real API server has seen', () => {
  for (const { apiVersion, kind, writes } of recorded) {
    const definition: MergedKind | undefined = kind === 'Widget' ? WIDGET : servedKind(apiVersion, kind);
    assert.ok(definition !== undefined);
    it(`give the same managers and conflicts of a ${kind}`, () => {
      let live: KubernetesObject | undefined;
      for (const { manager, subresource, apply, now, object, applied, updated = {}, message } of writes) {
        const common: ManagedWrite & { live: KubernetesObject | undefined } = {
          definition,
          subresource,
          manager,
          now,
          live,
        };
        if (message !== undefined) {
          assert.equal(apply && applyServerSide({ ...common, ...apply }).conflicts?.message, message);
          continue;
        }
        const server: KubernetesObject = object === undefined ? patched(live, {}) : patched(live, object);
        const made =
          apply === undefined
            ? trackUpdate({ ...common, updated: patched(server, updated) })
            : applyServerSide({ ...common, ...apply }).object;
        assert.ok(made !== undefined);
        assert.equal(managersOf(made), managersOf(server));
        if (applied !== undefined) {
          assert.deepEqual(contentOf(made), contentOf(patched(server, applied)));
        }
        const { managedFields } = made.metadata;
        const stored = patched(server, {
          metadata: { managedFields: (managedFields ?? null) as JsonValue },
        });
        assert.equal(live !== undefined && keepManagerTimes(live, stored) === live, object === undefined);
        live = server;
      }
    });
  }
});
