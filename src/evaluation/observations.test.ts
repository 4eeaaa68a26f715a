import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Observation } from '../engine/index.ts';
import { MAX_NUMBERED_OBSERVATIONS, ObservationReceiver, ObservationSender } from './observations.ts';

const observe = (rest: Partial<Observation> = {}): Observation => ({
  policy: 'p',
  mode: 'protect',
  route: 'validate',
  outcome: 'verdict',
  accepted: true,
  mutated: false,
  ...rest,
});

test('an observation is sent once, and arrives as the same object for all that are alike', () => {
  const sender = new ObservationSender();
  const receiver = new ObservationReceiver();
  const pass = (observation: Observation | null): Observation | null =>
    receiver.receive(structuredClone(sender.send(observation)));
  const first = pass(observe());
  const other = pass(observe({ accepted: false }));
  assert.deepEqual(first, observe());
  assert.deepEqual(other, observe({ accepted: false }));
  assert.equal(pass(observe()), first);
  assert.equal(pass(observe({ accepted: false })), other);
  assert.equal(pass(null), null);
  assert.equal(sender.send(observe()), 0);
});

test('observations that differ in an absent field are distinct', () => {
  const sender = new ObservationSender();
  sender.send(observe({ kind: 'Pod' }));
  assert.deepEqual(sender.send(observe({ namespace: 'Pod' })), observe({ namespace: 'Pod' }));
});

test('more different ones than are numbered still arrive', () => {
  const sender = new ObservationSender();
  const receiver = new ObservationReceiver();
  for (let round = 0; round < 2; round += 1) {
    for (let index = 0; index < MAX_NUMBERED_OBSERVATIONS + 10; index += 1) {
      const sent = observe({ namespace: `n${index}` });
      assert.deepEqual(receiver.receive(sender.send(sent)), sent);
    }
  }
});

test('observations are numbered from 0 again at both ends when policies are gone', () => {
  const sender = new ObservationSender();
  const receiver = new ObservationReceiver();
  for (let index = 0; index < 100; index += 1) {
    receiver.receive(sender.send(observe({ policy: `p${index}` })));
  }
  assert.deepEqual([sender.size, receiver.size], [100, 100]);
  sender.clear();
  receiver.clear();
  assert.deepEqual([sender.size, receiver.size], [0, 0]);
  const [first, again] = [sender.send(observe()), sender.send(observe())];
  assert.deepEqual([first, again], [observe(), 0]);
  assert.equal(receiver.receive(first), receiver.receive(again));
});
