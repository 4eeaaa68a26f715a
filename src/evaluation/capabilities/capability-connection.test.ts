import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import { CapabilityClient } from './capability-connection.ts';

const PODS = { apiVersion: 'v1', kind: 'Pod' };
const NODES = { apiVersion: 'v1', kind: 'Node' };

describe('the revision of kinds in a worker', () => {
  let revisions: KindRevisions;
  let client: CapabilityClient;
  let asked: number;
  /** Sends the next answer before its request: the client takes it at once. */
  let answer: (payload: number | null) => void;
  beforeEach(() => {
    const { port1, port2 } = new MessageChannel();
    revisions = new KindRevisions();
    client = new CapabilityClient({ port: port2, answered: new SharedArrayBuffer(4), revisions: revisions.buffer }, 10);
    asked = 0;
    answer = (payload) => port1.postMessage({ seq: (asked += 1), payload: JSON.stringify(payload) });
  });

  it('changes with each change of a kind, without further requests', () => {
    const [pods, nodes] = [revisions.assign(), revisions.assign()];
    answer(pods);
    answer(nodes);
    const first = client.revisionOf([PODS, NODES]);
    assert.equal(typeof first, 'string');
    assert.equal(client.revisionOf([PODS, NODES]), first);
    const ofPods = client.revisionOf([PODS]);
    revisions.changed(nodes);
    assert.notEqual(client.revisionOf([PODS, NODES]), first);
    assert.equal(client.revisionOf([PODS]), ofPods);
    revisions.changed(pods);
    assert.notEqual(client.revisionOf([PODS]), ofPods);
  });

  it('is requested again when a kind is no longer cached', () => {
    const pods = revisions.assign();
    answer(pods);
    const before = client.revisionOf([PODS]);
    revisions.ended();
    answer(null);
    assert.equal(client.revisionOf([PODS]), undefined);
    answer(pods);
    assert.notEqual(client.revisionOf([PODS]), before);
  });

  it('fails when there is no answer in time', () => {
    assert.throws(() => client.revisionOf([PODS]), /did not answer within 10 ms/);
  });
});
