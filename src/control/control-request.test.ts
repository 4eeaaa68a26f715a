import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RequestRefusal } from '../https/index.ts';
import { MAX_REQUEST_DEPTH, parseControlTarget, parsePrevalidation } from './control-request.ts';

const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** The result, or the status of the rejection. Any other error fails the test. */
function outcome<T>(work: () => T): T | number {
  try {
    return work();
  } catch (error) {
    assert.ok(error instanceof RequestRefusal, String(error));
    assert.ok(error.status >= 400 && error.status < 500);
    return error.status;
  }
}

describe('parsePrevalidation', () => {
  it('parses or rejects any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
        assert.ok([400, 422].includes(outcome(() => parsePrevalidation(body)) as number));
      }),
      { numRuns: 300 },
    );
  });

  it('accepts valid requests, and rejects any other JSON', () => {
    const kind = fc.oneof(
      fc.constantFrom('ClusterAdmissionPolicy', 'AdmissionPolicy', 'AdmissionPolicyGroup', '__proto__', 'toString'),
      fc.jsonValue(),
    );
    const name = fc.oneof(fc.string(), fc.jsonValue());
    const module = fc.oneof(fc.string(), fc.jsonValue());
    const spec = fc.oneof(
      fc.record({ module }, { requiredKeys: [] }),
      fc.record({ policies: fc.oneof(fc.dictionary(fc.string(), fc.record({ module })), fc.jsonValue()) }),
      fc.jsonValue(),
    );
    const metadata = fc.oneof(fc.record({ name, namespace: name }, { requiredKeys: ['name'] }), fc.jsonValue());
    fc.assert(
      fc.property(fc.record({ kind, metadata, spec }, { requiredKeys: [] }), (request) => {
        const parsed = outcome(() => parsePrevalidation(bytes(request)));
        if (typeof parsed !== 'number') {
          assert.ok(parsed.metadata.name.length > 0);
          assert.equal(parsed.kind.startsWith('Cluster'), parsed.metadata.namespace === undefined);
          const used = 'policies' in parsed.spec ? Object.values(parsed.spec.policies) : [parsed.spec];
          assert.ok(used.every((one) => typeof one.module === 'string'));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('limits the nesting of brackets, but ignores brackets in strings', () => {
    const nested = (depth: number): unknown => {
      let value: unknown = 1;
      for (let i = 0; i < depth; i += 1) {
        value = i % 2 === 0 ? [value] : { value };
      }
      return value;
    };
    const request = (settings: unknown): Uint8Array =>
      bytes({ kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: { module: 'm', settings } });
    assert.notEqual(
      outcome(() => parsePrevalidation(request(nested(MAX_REQUEST_DEPTH - 2)))),
      400,
    );
    assert.equal(
      outcome(() => parsePrevalidation(request(nested(MAX_REQUEST_DEPTH - 1)))),
      400,
    );
    assert.notEqual(
      outcome(() => parsePrevalidation(request('\\"[{'.repeat(1000)))),
      400,
    );
    assert.equal(
      outcome(() => parsePrevalidation(new TextEncoder().encode('['.repeat(7_000_000)))),
      400,
    );
  });
});

describe('parseControlTarget', () => {
  it('routes or rejects any request', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('GET', 'POST', 'PUT', undefined),
        fc.oneof(fc.string(), fc.webPath()),
        (method, url) => {
          outcome(() => parseControlTarget(method, url));
        },
      ),
    );
    assert.deepEqual(parseControlTarget('GET', '/stream?x=1'), { route: 'stream' });
  });
});
