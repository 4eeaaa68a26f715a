// Entry of the thread that validates policies: it compiles what users wrote.
import { workerData } from 'node:worker_threads';
import { answerJobs } from '../../threads/index.ts';
import { errorText } from '../../values/index.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';
import { OwnKindsRules } from './own-kinds-rules.ts';
import type { PolicyServerFacts, RulesAnswer, RulesJob, RulesStart } from './policy-reviews.ts';

const { modulesUrl, ...options } = workerData as RulesStart;
let facts: RulesJob['facts'] = {};
const factsOf = (policyServer: string): PolicyServerFacts => facts[policyServer] ?? {};
const rules = new OwnKindsRules({
  ...options,
  modulesUrl: modulesUrl === undefined ? undefined : new URL(modulesUrl),
  tenantHosts: (policyServer) => factsOf(policyServer).hosts,
  tenantModules: (policyServer) => factsOf(policyServer).modules,
  tenantCapabilities: (policyServer) => factsOf(policyServer).capabilities,
  kubewardenFinalizer: (policyServer) => factsOf(policyServer).kubewardenFinalizer,
});

answerJobs((job: RulesJob): RulesAnswer => {
  facts = job.facts;
  try {
    return answerOf(job.review);
  } catch (error) {
    // Such as a stack overflow by a deeply nested object.
    return { failure: errorText(error) };
  }
});

function answerOf(review: OwnKindsReview): RulesAnswer {
  const { error, ...verdict } = rules.validate(review);
  if (error === undefined) {
    return verdict;
  }
  const { code, reason, message, details } = error;
  return { ...verdict, error: { code, reason, message, details } };
}
