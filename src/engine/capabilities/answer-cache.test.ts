import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AnswerCache, MAX_KEPT_ANSWERS, MAX_KEPT_ANSWERS_LENGTH } from './answer-cache.ts';

const GET = 'kubernetes/get_resource';

function payload(name: string, rest: object = {}): string {
  return JSON.stringify({ api_version: 'v1', kind: 'Pod', namespace: 'shop', name, ...rest });
}

/** A cache whose host answers with the revision. */
function setUp() {
  const host = { revision: '1' as string | undefined, calls: 0, padding: '' };
  const cache = new AnswerCache({
    revisionOf: () => host.revision,
    request() {
      host.calls += 1;
      return `"${host.revision}${host.padding}"`;
    },
  });
  return { host, cache };
}

describe('AnswerCache', () => {
  it('calls the host again only when an object of the kind has changed', () => {
    const { host, cache } = setUp();
    assert.equal(cache.request(GET, payload('a')), '"1"');
    assert.equal(cache.request(GET, payload('a')), '"1"');
    assert.equal(host.calls, 1);
    cache.request(GET, payload('b'));
    cache.request('kubernetes/list_resources_all', payload('a'));
    assert.equal(host.calls, 3);
    host.revision = '2';
    assert.equal(cache.request(GET, payload('a')), '"2"');
  });

  it('always calls the host without a revision, with disable_cache, and for other capabilities', () => {
    const { host, cache } = setUp();
    const callsTwice = (capability: string, text: string): boolean => {
      const before = host.calls;
      cache.request(capability, text);
      cache.request(capability, text);
      return host.calls === before + 2;
    };
    assert.equal(callsTwice(GET, payload('a', { disable_cache: true })), true);
    assert.equal(callsTwice('kubernetes/can_i', payload('a')), true);
    assert.equal(callsTwice('net/v1/dns_lookup_host', '"localhost"'), true);
    assert.equal(callsTwice(GET, '{}'), true);
    host.revision = undefined;
    assert.equal(callsTwice(GET, payload('a')), true);
  });

  it('limits the number and the length of cached answers', () => {
    const { host, cache } = setUp();
    for (let index = 0; index <= MAX_KEPT_ANSWERS; index += 1) {
      cache.request(GET, payload(`p${index}`));
    }
    const { calls } = host;
    cache.request(GET, payload('p1'));
    assert.equal(host.calls, calls);
    cache.request(GET, payload('p0'));
    assert.equal(host.calls, calls + 1);
    host.padding = ' '.repeat(MAX_KEPT_ANSWERS_LENGTH - 100);
    cache.request(GET, payload('large'));
    cache.request(GET, payload('large'));
    assert.equal(host.calls, calls + 2);
    cache.request(GET, payload('p1'));
    assert.equal(host.calls, calls + 3, 'made room for the large one');
  });
});
