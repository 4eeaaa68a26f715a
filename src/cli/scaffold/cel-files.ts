// The files of a new policy in CEL.
import type { PolicyPlan } from './policy-plan.ts';
import { headText, LABEL, nounOf, objectText, rulesText, suiteHeadText } from './policy-yaml.ts';

const HAS_LABEL = `has(object.metadata.labels) && '${LABEL}' in object.metadata.labels`;
const MESSAGE = `the label ${LABEL} is missing: add it under metadata.labels`;
/** The value that a mutating policy adds. */
const ADDED = 'unassigned';

/** Texts by file name. */
export function celFiles(plan: PolicyPlan): ReadonlyMap<string, string> {
  return new Map([
    ['policy.yaml', plan.isMutating ? mutatingPolicy(plan) : validatingPolicy(plan)],
    ['portcullis-test.yml', plan.isMutating ? mutatingSuite(plan) : validatingSuite(plan)],
  ]);
}

/** Texts by file name, of a group. */
export function groupFiles(plan: PolicyPlan): ReadonlyMap<string, string> {
  return new Map([
    ['policy.yaml', groupPolicy(plan)],
    ['portcullis-test.yml', groupSuite(plan)],
  ]);
}

function validatingPolicy(plan: PolicyPlan): string {
  return `# Admits ${nounOf(plan)} only with the label ${LABEL}.
${headText(plan)}spec:
  module: builtin:cel
  mutating: false
${rulesText(plan)}  settings:
    # An object is admitted when all expressions are true. They are CEL, as in a ValidatingAdmissionPolicy.
    validations:
      - expression: ${HAS_LABEL}
        message: '${MESSAGE}'
`;
}

function validatingSuite(plan: PolicyPlan): string {
  return `${suiteHeadText(plan)}  - name: ${nounOf(plan)} with the label is admitted
${objectText(plan, 'web', `${LABEL}: shop`)}    expect: {allowed: true}

  - name: ${nounOf(plan)} without it is rejected
${objectText(plan, 'web', '')}    expect:
      allowed: false
      message: '${MESSAGE}'
`;
}

function mutatingPolicy(plan: PolicyPlan): string {
  return `# Adds the label ${LABEL} to ${nounOf(plan)} that has none.
${headText(plan)}spec:
  module: builtin:cel
  mutating: true
${rulesText(plan)}  settings:
    # The policy changes an object when all conditions are true. They are CEL, as in a MutatingAdmissionPolicy.
    matchConditions:
      - name: no-${LABEL}
        expression: '!(${HAS_LABEL.replaceAll("'", '"')})'
    mutations:
      - patchType: ApplyConfiguration
        applyConfiguration:
          expression: "Object{metadata: Object.metadata{labels: {'${LABEL}': '${ADDED}'}}}"
`;
}

function mutatingSuite(plan: PolicyPlan): string {
  return `${suiteHeadText(plan)}  - name: ${nounOf(plan)} without the label gets it
${objectText(plan, 'web', '')}    expect:
      allowed: true
      objectContains: {metadata: {labels: {${LABEL}: ${ADDED}}}}

  - name: ${nounOf(plan)} with the label keeps it
${objectText(plan, 'web', `${LABEL}: shop`)}    expect: {matched: false}
`;
}

function groupPolicy(plan: PolicyPlan): string {
  return `# Admits ${nounOf(plan)} with the label ${LABEL}, and those whose names begin with trial-.
${headText(plan)}spec:
  # The verdicts of the members, combined.
  expression: owned() || trial()
  message: '${MESSAGE}'
${rulesText(plan)}  policies:
    owned:
      module: builtin:cel
      settings:
        validations:
          - expression: ${HAS_LABEL}
    trial:
      module: builtin:cel
      settings:
        validations:
          - expression: object.metadata.?name.orValue('').startsWith('trial-')
`;
}

function groupSuite(plan: PolicyPlan): string {
  return `${suiteHeadText(plan)}  - name: ${nounOf(plan)} with the label is admitted
${objectText(plan, 'web', `${LABEL}: shop`)}    expect: {allowed: true}

  - name: a trial needs no label
${objectText(plan, 'trial-web', '')}    expect: {allowed: true}

  - name: others without the label are rejected
${objectText(plan, 'web', '')}    expect:
      allowed: false
      message: '${MESSAGE}'
`;
}
