import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestRecorder } from './request-recorder.ts';

const SECRET_TEXT = 'c2VjcmV0';

function review(name: string, object: object = {}, more: object = {}): Buffer {
  const request = { uid: name, kind: { group: '', version: 'v1', kind: 'Pod' }, operation: 'CREATE', object, ...more };
  return Buffer.from(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
}

interface Listed {
  readonly items: readonly { readonly request: { readonly uid: string; readonly object?: unknown } }[];
}

const listed = (recorder: RequestRecorder): Listed => JSON.parse(recorder.list().toString()) as Listed;
const names = (recorder: RequestRecorder): readonly string[] =>
  listed(recorder).items.map(({ request }) => request.uid);

/** Once per second, so that none is left out. */
function recordAll(recorder: RequestRecorder, requests: readonly (readonly [Buffer, readonly string[]])[]): void {
  requests.forEach(([body, policies], index) => recorder.record(body, policies, (index + 1) * 1_000));
}

describe('recorded requests', () => {
  it('are the last ones of each policy', () => {
    const recorder = new RequestRecorder(2);
    recordAll(recorder, [
      [review('rare'), ['rare', 'often']],
      [review('one'), ['often']],
      [review('two'), ['often']],
      [review('three'), ['often']],
      [review('nobody'), []],
    ]);
    assert.deepEqual(names(recorder), ['rare', 'two', 'three']);
  });

  it('have the values of no Secret, of no environment variable, and no copies of these', () => {
    const recorder = new RequestRecorder(10);
    const secret = {
      metadata: { name: 's', annotations: { 'kubectl.kubernetes.io/last-applied-configuration': SECRET_TEXT, a: 'b' } },
      type: 'Opaque',
      data: { password: SECRET_TEXT },
      stringData: { token: SECRET_TEXT },
    };
    const env = [
      { name: 'KEY', value: SECRET_TEXT },
      { name: 'REF', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
    ];
    const workload = { spec: { template: { spec: { containers: [{ name: 'c', image: 'i', env }] } } } };
    recordAll(recorder, [
      [review('secret', secret, { kind: { group: '', version: 'v1', kind: 'Secret' }, oldObject: secret }), ['a']],
      [review('workload', workload, { oldObject: workload }), ['a']],
      [review('token', {}, { kind: { group: 'authentication.k8s.io', kind: 'TokenReview' } }), ['a']],
      [review('large', { text: 'x'.repeat(128 * 1024) }), ['a']],
      [Buffer.from(`{"request":{"object":${'['.repeat(60_000)}${']'.repeat(60_000)}}}`), ['a']],
      [Buffer.from('no json'), ['a']],
    ]);
    assert.deepEqual(names(recorder), ['secret', 'workload']);
    assert.equal(recorder.list().includes(SECRET_TEXT), false);
    const [one, other] = listed(recorder).items.map(({ request }) => request.object);
    assert.deepEqual(one, {
      metadata: { name: 's', annotations: { a: 'b' } },
      type: 'Opaque',
      data: { password: '' },
      stringData: { token: '' },
    });
    const emptied = [{ name: 'KEY', value: '' }, env[1]];
    assert.deepEqual(other, {
      spec: { template: { spec: { containers: [{ name: 'c', image: 'i', env: emptied }] } } },
    });
  });

  it('are bounded by bytes, and by their rate', () => {
    const recorder = new RequestRecorder(1_000);
    const text = 'x'.repeat(120 * 1024);
    recordAll(
      recorder,
      Array.from({ length: 400 }, (_, index) => [review(String(index), { text }), ['a']] as const),
    );
    const bytes = recorder.list().byteLength;
    assert.ok(bytes > 30 * 2 ** 20 && bytes < 33 * 2 ** 20, String(bytes));
    assert.equal(names(recorder).at(-1), '399');
    const fast = new RequestRecorder(1_000);
    for (let index = 0; index < 500; index += 1) {
      fast.record(review(String(index)), ['a'], 1_000 + index);
    }
    assert.equal(names(fast).length, 50);
  });
});
