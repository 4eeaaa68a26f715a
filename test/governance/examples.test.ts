// The examples of governance on the embedded cluster. test/e2e/governance-rights.test.ts runs them on a kube-apiserver.
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { certificateRefreshed, jobHeld } from './certificate-refresh-example.ts';
import { kafkaInOrder, kafkaUndone, kafkaWithABadChange, kafkaWithoutOperator } from './kafka-example.ts';
import { ServedLab } from './served-lab.ts';

describe('the examples of governance', { skip: skipWithoutCluster() }, () => {
  let served: ServedLab;
  before(async () => {
    served = await ServedLab.start();
  });
  after(() => served[Symbol.asyncDispose]());

  it('apply an operator and what it operates in order', () => kafkaInOrder(served));
  it('suspend what is applied while the operator is gone', () => kafkaWithoutOperator(served));
  it('keep what is applied while a change fails, and go back by kubectl', () => kafkaWithABadChange(served));
  it('go back by the command line', () => kafkaUndone(served, (...args) => served.run('admin', ...args)));
  it('create a Job while a certificate needs it', () => certificateRefreshed(served));
  it('announce by status that the Job is deleted', () => jobHeld(served));
});
