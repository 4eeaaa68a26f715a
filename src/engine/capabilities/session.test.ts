import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReplayPort, SessionRecorder } from './session.ts';

// In kwctl's format.
const SESSION = `
- type: Exchange
  request: |
    !KubernetesGetResource
    api_version: v1
    kind: Namespace
    name: "on"
    namespace: null
    disable_cache: true
    field_masks: null
  response:
    type: Success
    payload: '{"kind":"Namespace"}'
- type: Exchange
  request: |
    !KubernetesGetResource
    api_version: v1
    kind: Namespace
    name: x
    namespace: null
    disable_cache: true
  response:
    type: Error
    message: Cannot find v1/Namespace named 'x' inside of namespace 'None'
- type: Exchange
  request: |
    !KubernetesListResourceAll
    api_version: v1
    kind: Pod
    label_selector: null
    field_selector: null
    field_masks: [b, a]
  response: {type: Success, payload: first}
- type: Exchange
  request: "!KubernetesListResourceAll {api_version: v1, kind: Pod, field_masks: [a, b]}"
  response: {type: Success, payload: second}
- type: Exchange
  request: "!DNSLookupHost\\nhost: example.com\\n"
  response: {type: Success, payload: '{"ips":["192.0.2.1"]}'}
`;

test('replays a session of kwctl: answers, errors, and equal requests in order', () => {
  const port = new ReplayPort(SESSION);
  const get = (name: string): string =>
    port.request(
      'kubernetes/get_resource',
      JSON.stringify({ api_version: 'v1', kind: 'Namespace', name, disable_cache: true }),
    );
  assert.equal(get('on'), '{"kind":"Namespace"}');
  assert.throws(() => get('x'), /^EngineError: Cannot find v1\/Namespace named 'x' inside of namespace 'None'$/);
  const list = (): string =>
    port.request(
      'kubernetes/list_resources_all',
      '{"api_version":"v1","kind":"Pod","label_selector":null,"field_masks":["a","b"]}',
    );
  assert.deepEqual([list(), list(), list()], ['first', 'second', 'second']);
  assert.equal(port.request('net/v1/dns_lookup_host', '"example.com"'), '{"ips":["192.0.2.1"]}');
  assert.throws(() => get('other'), /no answer for KubernetesGetResource .*"name":"other".*: record it again/);
  assert.throws(() => port.request('cache/get', '{}'), /unknown host capability: cache\/get/);
});

test('any recorded request can be replayed', async () => {
  const inner = (capability: string, payload: string): Promise<string> =>
    payload.includes('missing')
      ? Promise.reject(new Error('not: there'))
      : Promise.resolve(JSON.stringify({ capability, text: 'a\n"b": c' }));
  const questions: [string, unknown][] = [
    [
      'kubernetes/list_resources_by_namespace',
      { api_version: 'v1', kind: 'Pod', namespace: 'yes', label_selector: 'a=b' },
    ],
    ['kubernetes/list_resources_all', { api_version: 'apps/v1', kind: 'Deployment', field_masks: ['metadata.name'] }],
    ['kubernetes/get_resource', { api_version: 'v1', kind: 'Pod', name: '1', namespace: 'null', disable_cache: false }],
    ['kubernetes/get_resource', { api_version: 'v1', kind: 'Pod', name: 'missing', disable_cache: true }],
    ['kubernetes/get_resource_plural_name', { api_version: 'v1', kind: 'Pod' }],
    [
      'kubernetes/can_i',
      {
        subject_access_review: { user: 'u', groups: null, resource_attributes: { verb: 'get', resource: 'pods' } },
        disable_cache: true,
      },
    ],
    ['net/v1/dns_lookup_host', 'example.com'],
    ['crypto/v1/is_certificate_trusted', { cert: { encoding: 'Der', data: [1, 2] }, not_after: null }],
    ['oci/v1/manifest_digest', 'img:1'],
    ['oci/v1/verify', { SigstorePubKeyVerify: { image: 'i', pub_keys: ['k'], annotations: {} } }],
    ['oci/v2/verify', { type: 'SigstorePubKeyVerify', image: 'j', pub_keys: ['k'], annotations: null }],
  ];
  const answers = async (
    ask: (capability: string, payload: string) => Promise<string> | string,
  ): Promise<unknown[]> => {
    const texts: unknown[] = [];
    for (const [capability, payload] of questions) {
      try {
        texts.push(await ask(capability, JSON.stringify(payload)));
      } catch (error) {
        texts.push((error as Error).message);
      }
    }
    return texts;
  };
  const recorder = new SessionRecorder(inner);
  const live = await answers((capability, payload) => recorder.answer(capability, payload));
  assert.match(recorder.text(), /request: \|\n {4}!KubernetesListResourceNamespace\n {4}api_version: v1\n/);
  const replay = new ReplayPort(recorder.text());
  assert.deepEqual(await answers((capability, payload) => replay.request(capability, payload)), live);
  assert.ok(live.includes('not: there'));
});

for (const text of [
  'a: [',
  '{}',
  '- 1',
  '- {type: Exchange, request: "api_version: v1"}',
  '- {type: Exchange, request: "!A {}"}',
  '- {type: Exchange, request: "!A {", response: {type: Error, message: m}}',
]) {
  test(`a session that is ${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => new ReplayPort(text), { code: 'session-malformed' });
  });
}
