import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isJsonObject } from '../resources/index.ts';
import { installObjects } from './install-objects.ts';
import { defaultValues } from './read-values.ts';
import { OWNED_KINDS } from './kinds.ts';

describe('the kinds that uninstall removes from the namespace', () => {
  it('include every kind of an installation, for any values', () => {
    const allOn = (value: unknown): unknown =>
      isJsonObject(value)
        ? Object.fromEntries(
            Object.entries(value).map(([key, one]): [string, unknown] => [key, key === 'enabled' || allOn(one)]),
          )
        : value;
    const values = allOn(defaultValues('1.0.0')) as ReturnType<typeof defaultValues>;
    const kinds = installObjects({ namespace: 'portcullis', values })
      .filter(({ metadata }) => metadata.namespace === 'portcullis')
      .map(({ kind }) => kind);
    assert.ok(kinds.includes('Certificate') && kinds.includes('PrometheusRule'));
    // It is deleted before all others.
    const removed = new Set(['Deployment', ...OWNED_KINDS.map(({ kind }) => kind)]);
    assert.deepEqual(
      kinds.filter((kind) => !removed.has(kind)),
      [],
    );
  });
});
