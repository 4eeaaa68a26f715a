import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AnswerCache, MAX_KEPT_ANSWERS, MAX_KEPT_ANSWERS_LENGTH } from './answer-cache.ts';

const GET = 'kubernetes/get_resource';

function payload(name: string, rest: object = {}): string {
  return JSON.stringify({ api_version: 'v1', kind: 'Pod', namespace: 'shop', name, ...rest });
}

/** A cache before a host whose answers name the revision. */
function asking() {
  const host = { revision: '1' as string | undefined, questions: 0, padding: '' };
  const cache = new AnswerCache({
    revisionOf: () => host.revision,
    request() {
      host.questions += 1;
      return `"${host.revision}${host.padding}"`;
    },
  });
  return { host, cache };
}

describe('AnswerCache', () => {
  it('asks again only when an object of the kind has changed', () => {
    const { host, cache } = asking();
    assert.equal(cache.request(GET, payload('a')), '"1"');
    assert.equal(cache.request(GET, payload('a')), '"1"');
    assert.equal(host.questions, 1);
    cache.request(GET, payload('b'));
    cache.request('kubernetes/list_resources_all', payload('a'));
    assert.equal(host.questions, 3);
    host.revision = '2';
    assert.equal(cache.request(GET, payload('a')), '"2"');
  });

  it('asks each time where nobody counts changes, the policy wants it, or it is no read of objects', () => {
    const { host, cache } = asking();
    const isAskedTwice = (capability: string, text: string): boolean => {
      const before = host.questions;
      cache.request(capability, text);
      cache.request(capability, text);
      return host.questions === before + 2;
    };
    assert.equal(isAskedTwice(GET, payload('a', { disable_cache: true })), true);
    assert.equal(isAskedTwice('kubernetes/can_i', payload('a')), true);
    assert.equal(isAskedTwice('net/v1/dns_lookup_host', '"localhost"'), true);
    assert.equal(isAskedTwice(GET, '{}'), true);
    host.revision = undefined;
    assert.equal(isAskedTwice(GET, payload('a')), true);
  });

  it('keeps so many answers, and so much of them', () => {
    const { host, cache } = asking();
    for (let index = 0; index <= MAX_KEPT_ANSWERS; index += 1) {
      cache.request(GET, payload(`p${index}`));
    }
    const { questions } = host;
    cache.request(GET, payload('p1'));
    assert.equal(host.questions, questions);
    cache.request(GET, payload('p0'));
    assert.equal(host.questions, questions + 1);
    host.padding = ' '.repeat(MAX_KEPT_ANSWERS_LENGTH - 100);
    cache.request(GET, payload('large'));
    cache.request(GET, payload('large'));
    assert.equal(host.questions, questions + 2);
    cache.request(GET, payload('p1'));
    assert.equal(host.questions, questions + 3, 'made room for the large one');
  });
});
