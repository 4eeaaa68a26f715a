// The files of a new policy in Rego, for either entry point.
import type { PolicyPlan } from './policy-plan.ts';
import { headText, LABEL, nounOf, objectText, rulesText, suiteHeadText } from './policy-yaml.ts';

type RegoLanguage = Exclude<PolicyPlan['language'], 'cel'>;

/** The rule that a server calls. */
const ENTRY_POINTS: Readonly<Record<RegoLanguage, string>> = { rego: 'policy/main', gatekeeper: 'policy/violation' };
/** `executionMode` of the metadata. */
const MODES: Readonly<Record<RegoLanguage, string>> = { rego: 'opa', gatekeeper: 'gatekeeper' };
const SOURCES: Readonly<Record<RegoLanguage, string>> = { rego: answeringRego(), gatekeeper: gatekeeperRego() };

/** Texts by file name. */
export function regoFiles(plan: PolicyPlan, language: RegoLanguage): ReadonlyMap<string, string> {
  return new Map([
    ['policy.rego', `${introText(plan, language)}${SOURCES[language]}`],
    ['metadata.yml', metadataText(plan, language)],
    ['policy.yaml', manifestText(plan)],
    ['portcullis-test.yml', suiteText(plan)],
  ]);
}

/** The commands that build the module from its source, in its folder. */
export function buildCommands(language: RegoLanguage): readonly string[] {
  return [
    `opa build -t wasm -e ${ENTRY_POINTS[language]} -o bundle.tar.gz policy.rego`,
    'tar -xzf bundle.tar.gz /policy.wasm',
    'portcullis annotate policy.wasm -m metadata.yml -o policy.wasm',
  ];
}

function introText(plan: PolicyPlan, language: RegoLanguage): string {
  return `# Admits ${nounOf(plan)} only with a label. Its name is a setting.
#
# Build the module after every change:
${buildCommands(language)
  .map((line) => `#   ${line}\n`)
  .join('')}package policy

`;
}

/** For plain OPA: the rule answers the review. */
function answeringRego(): string {
  return `# The answer to a review. The request is in \`input.request\`, the settings are in \`data\`.
main := {
	"apiVersion": "admission.k8s.io/v1",
	"kind": "AdmissionReview",
	"response": response,
}

default label := "${LABEL}"

label := data.label

response := {"uid": input.request.uid, "allowed": true} if {
	count(violations) == 0
}

response := {
	"uid": input.request.uid,
	"allowed": false,
	"status": {"message": concat(", ", violations)},
} if {
	count(violations) > 0
}

violations contains message if {
	not input.request.object.metadata.labels[label]
	message := sprintf("the label %s is missing: add it under metadata.labels", [label])
}
`;
}

/** For Gatekeeper: each violation is a reason to reject. */
function gatekeeperRego(): string {
  return `# Each violation is a reason to reject. The request is \`input.review\`, the settings are \`input.parameters\`.
violation contains {"msg": message} if {
	not input.review.object.metadata.labels[label]
	message := sprintf("the label %s is missing: add it under metadata.labels", [label])
}

default label := "${LABEL}"

label := input.parameters.label
`;
}

function metadataText({ name, kind }: PolicyPlan, language: RegoLanguage): string {
  return `# Becomes part of the module, with \`portcullis annotate\`.
executionMode: ${MODES[language]}
mutating: false
rules:
  - apiGroups: [${kind.group === '' ? "''" : kind.group}]
    apiVersions: [${kind.version}]
    resources: [${kind.resource}]
    operations: [CREATE, UPDATE]
annotations:
  io.kubewarden.policy.title: ${name}
  io.kubewarden.policy.description: Objects need a label
`;
}

function manifestText(plan: PolicyPlan): string {
  return `${headText(plan)}spec:
  # A file, for tests and for \`portcullis start\` in this folder. Other clusters need a registry: see \`portcullis push\`.
  module: file://./policy.wasm
  mutating: false
${rulesText(plan)}  settings:
    label: ${LABEL}
`;
}

function suiteText(plan: PolicyPlan): string {
  const message = `the label ${LABEL} is missing: add it under metadata.labels`;
  return `${suiteHeadText(plan)}  - name: ${nounOf(plan)} with the label is admitted
${objectText(plan, 'web', `${LABEL}: shop`)}    expect: {allowed: true}

  - name: ${nounOf(plan)} without it is rejected
${objectText(plan, 'web', '')}    expect:
      allowed: false
      message: '${message}'

  - name: another label may be required
    settings: {label: team}
${objectText(plan, 'web', `${LABEL}: shop`)}    expect:
      allowed: false
      message: '${message.replace(LABEL, 'team')}'
`;
}
