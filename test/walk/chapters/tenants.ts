// Toolforge's successor of PodSecurityPolicy: a profile for each of thousands of namespaces, which differs in the user and group of the
// tool only. As one policy for each namespace, it took the control plane down.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../cli/command.ts';
import type { Probe, WalkChapter } from '../walk-step.ts';
import { applyObject } from './policies.ts';

const UID = 'toolforge.example.com/uid';
/** More than a message names. */
const TOOLS = Array.from({ length: 40 }, (_, index) => ({ name: `tool-${index + 10}`, uid: 52_500 + index }));
const NAMESPACES = TOOLS.map(({ name, uid }) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { tenancy: 'tool' }, annotations: { [UID]: String(uid) } },
}));
const POLICY = readFileSync(join(ROOT, 'examples', 'toolforge', 'policy.yaml'), 'utf8');

/** Prints the number of webhooks. */
const WEBHOOKS =
  "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -c 'admissionReviewVersions:'";

function pod(namespace: string, gets: RegExp, runAsUser?: number): Probe {
  const securityContext = runAsUser === undefined ? {} : { securityContext: { runAsUser } };
  const containers = [{ name: 'web', image: 'web', ...securityContext }];
  return {
    path: `/api/v1/namespaces/${namespace}/pods`,
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { automountServiceAccountToken: false, containers },
    },
    gets,
  };
}

const patch = (spec: object): string =>
  `kubectl patch cap tool-pods --type=merge --patch-file=/dev/stdin <<'EOF'\n${JSON.stringify({ spec })}\nEOF`;

const annotate = (tool: number, value: string): string =>
  `kubectl annotate namespace tool-${tool} --overwrite ${UID}=${value}`;

/** Tenants that are valid, and one that is not. */
const VALID = [pod('tool-11', /^201$/), pod('tool-13', /runAsUser: expected 52503, got 7/, 7)];
const REFUSED = pod('tool-12', /the parameters of the namespace "tool-12" are invalid: settingsExpression failed/);

const id = `int(params.annotations['${UID}'])`;
/** With this, tools whose user is not above 52501 have none. */
const SHIFTED = { settingsExpression: `{'runAsUser': ${id} - 52502, 'runAsGroup': ${id}, 'fsGroup': ${id}}` };

/** The reader sees that one tenant is refused for its parameters, by a revision that serves everywhere. */
function refusedBy(revision: number, shows: string): WalkChapter['steps'][number] {
  return {
    by: 'reader',
    shows,
    sh: `kubectl get cap tool-pods; kubectl wait cap/tool-pods --for=condition=ParametersValid=False --timeout=0
      portcullis rollout status cap/tool-pods; portcullis doctor`,
    prints: [
      new RegExp(
        `^tool-pods +protect +Active +True +${revision} +${revision} +(\\d) +(?:\\S+ +)?InvalidParameters `,
        'm',
      ),
      /but InvalidParameters: 1 of 40 namespaces would be refused for their parameters: tool-12 \(/,
      /^warning PolicyIssue: clusteradmissionpolicy\/tool-pods$/m,
    ],
    probes: [...VALID, REFUSED],
  };
}

export const TENANTS: WalkChapter = {
  title: '3 the mistake of a tenant concerns that tenant only',
  steps: [
    {
      by: 'admin',
      shows: 'creates the namespaces of the tenants, and one policy for all of them',
      sh: `${applyObject({ apiVersion: 'v1', kind: 'List', items: NAMESPACES })}
        kubectl apply -f - <<'EOF'\n${POLICY}\nEOF`,
      prints: [/namespace\/tool-49 created/, /tool-pods created/],
    },
    {
      by: 'reader',
      shows: 'sees that it serves, and that the parameters of all tenants are valid',
      sh: `kubectl wait cap/tool-pods --for=condition=Ready && kubectl wait cap/tool-pods --for=condition=ParametersValid
        kubectl get cap tool-pods`,
      prints: [/^tool-pods +protect +Active +True +1 +1 +\d +(?:\S+ +)?Serving /m],
      probes: [...VALID, pod('tool-12', /^201$/)],
    },
    {
      by: 'admin',
      shows: 'counts the webhooks, and makes the parameters of one tenant invalid',
      sh: `${WEBHOOKS} > webhooks; cat webhooks; ${annotate(12, 'nobody')}`,
      prints: [/^\d\n/, /tool-12 annotated/],
    },
    refusedBy(1, 'sees which tenant is refused, and why'),
    {
      by: 'admin',
      shows: 'changes meanwhile how the policy is enforced, then what it says',
      sh: `${patch({ timeoutSeconds: 7 })}\nportcullis rollout status cap/tool-pods
        ${patch({ settings: { hostNetwork: true } })}\nportcullis rollout status cap/tool-pods`,
      prints: [/revision 2 serves on (\d) of \1/, /revision 3 serves on (\d) of \1/],
    },
    refusedBy(3, 'sees that the invalid tenant stopped no change, and is refused as before'),
    {
      by: 'admin',
      shows: 'goes back',
      sh: 'portcullis rollout undo cap/tool-pods',
      prints: [/tool-pods rolled back to revision 2$/m],
    },
    refusedBy(4, 'sees who is refused by a revision of before'),
    {
      by: 'admin',
      shows: 'changes again only how the policy is enforced, so that no module is loaded',
      sh: patch({ timeoutSeconds: 9 }),
      prints: [/patched/],
    },
    refusedBy(5, 'sees who is refused by a revision that evaluates as the one before'),
    {
      by: 'admin',
      shows: 'makes a change with which two other tenants would be refused',
      sh: patch({ parameters: SHIFTED }),
      prints: [/patched/],
    },
    {
      by: 'reader',
      shows: 'sees that it failed for these two, who are valid today and stay so, and what to do',
      sh: 'kubectl get cap tool-pods; portcullis rollout status cap/tool-pods --watch=false',
      code: 1,
      prints: [
        /^tool-pods +protect +Degraded +True +6 +5 +0 +(?:\S+ +)?InvalidParameters /m,
        /revision 6 failed: 2 of 40 namespaces would be refused for their parameters: tool-10, tool-11 \(/,
        /invalid before, and not counted: 1 namespace \(tool-12\)/,
        /^Correct the parameters of the namespaces that the message names; it is tried again by itself\./m,
      ],
      probes: [...VALID, REFUSED],
    },
    {
      by: 'admin',
      shows: 'corrects the data of all three, and no policy',
      sh: [10, 11, 12].map((tool) => annotate(tool, `529${tool}`)).join('\n'),
      prints: [/tool-10 annotated\n.*tool-11 annotated\n.*tool-12 annotated/],
    },
    {
      by: 'reader',
      shows: 'sees that the change serves now, and that no tenant is refused',
      sh: `kubectl get cap tool-pods; kubectl wait cap/tool-pods --for=condition=ParametersValid --timeout=0
        portcullis rollout status cap/tool-pods`,
      prints: [
        /^tool-pods +protect +Active +True +6 +6 +\d +(?:\S+ +)?Serving /m,
        /tool-pods: Active: revision 6 serves on (\d) of \1 replicas$/m,
      ],
      probes: [pod('tool-12', /^201$/), pod('tool-13', /runAsUser: expected 1, got 7/, 7)],
    },
    {
      by: 'admin',
      shows: 'counts as many webhooks as before',
      sh: `${WEBHOOKS} | diff webhooks - && kubectl delete cap tool-pods`,
      prints: [/"tool-pods" deleted/],
    },
  ],
};
