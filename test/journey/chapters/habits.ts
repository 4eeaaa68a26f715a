import type { Chapter } from '../../steps/step.ts';

const PINNED = '../examples/pinned-images/policy.yaml';
const DENIAL = /nginx: an image needs a tag that says which version runs/;

/** A command that prints the manifest of a pod. */
function pod(name: string, image: string): string {
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name, image }] },
  };
  return `echo '${JSON.stringify(object)}'`;
}

export const HABITS: Chapter = {
  title: '2 habits',
  steps: [
    {
      shows: 'apply --dry-run=server stores nothing',
      sh: `portcullis apply --dry-run=server -f ${PINNED}; portcullis get cap/pinned-images`,
      code: 1,
      prints: [/pinned-images created \(server dry run\)$/m, /"pinned-images" not found/],
    },
    {
      shows: 'apply stores it, and wait takes its bare name',
      sh: `portcullis apply -f ${PINNED} && portcullis wait pinned-images --for=condition=Enforced --timeout=30s`,
      prints: [/pinned-images created$/m, /condition met$/m],
    },
    {
      shows: 'apply of an empty input is an error',
      sh: 'portcullis apply -f - < /dev/null',
      code: 1,
      prints: [/^error: standard input: no manifests$/m],
    },
    {
      shows: 'apply creates a pod without kubectl, or shows the denial',
      sh: `${pod('quick', 'nginx:1.29')} | portcullis apply -f - && ${pod('denied', 'nginx')} | portcullis apply -f -`,
      code: 1,
      prints: [/^pod\/quick created$/m, DENIAL],
    },
    {
      shows: 'get without arguments shows all of our kinds',
      sh: 'portcullis get',
      prints: [
        /\/pinned-images .* Active /,
        /^clusteradmissionpolicygroup\S*\/privileged-by-exception /m,
        /^policyserver\S*\/default /m,
      ],
    },
    {
      shows: 'get all is that of kubectl',
      sh: 'portcullis get all -A',
      prints: [/ pod\/quick /, / service\/kubernetes /],
    },
    {
      shows: 'get, describe and events take a bare name',
      sh: 'portcullis get pinned-images && portcullis describe pinned-images && portcullis events --for pinned-images',
      prints: [/^pinned-images /m, /^Name: +pinned-images$/m, /Serving +ClusterAdmissionPolicy\/pinned-images/],
    },
    {
      shows: 'a bare name that two objects have is no name',
      sh: `sed 's/: ClusterAdmissionPolicy/: AdmissionPolicy/' ${PINNED} | portcullis apply -n default -f -
        portcullis get pinned-images; code=$?
        portcullis delete ap/pinned-images; exit $code`,
      code: 2,
      prints: [/several objects have the name pinned-images: \S+, \S+/],
    },
    {
      shows: 'managedFields are shown when they are asked for',
      sh: `portcullis get pod quick -o yaml | grep -c managedFields
        portcullis get pod quick -o yaml --show-managed-fields | grep -c managedFields`,
      prints: [/^0\n1$/m],
    },
    {
      shows: 'wait for what does not exist ends with not found',
      sh: 'portcullis wait cap/none --for=condition=PolicyActive',
      code: 1,
      prints: [/"none" not found$/m],
    },
    {
      shows: 'a mistyped kind is recognized',
      sh: 'portcullis get deploymnts',
      code: 2,
      prints: [/^Did you mean deployments\?$/m],
    },
    {
      shows: 'a name that is no kind is not',
      sh: 'portcullis get web',
      code: 2,
      prints: [/no resource type "web", and no policy of this name/],
      omits: /Did you mean/,
    },
    {
      shows: 'version shows client and cluster',
      sh: 'portcullis version',
      prints: [/^Client Version: v\d+\.\d+\.\d+\S*\nServer Version: v1\.\d+\.\d+\+portcullis$/m],
    },
    {
      shows: 'patch changes a policy, and rollout status takes its bare name',
      sh: `portcullis patch pinned-images -p '{"spec": {"timeoutSeconds": 5}}' && portcullis rollout status pinned-images`,
      prints: [/pinned-images patched$/m, /Active: revision 2 serves on 1 of 1 replicas$/m],
    },
    {
      shows: 'rollout history takes its bare name',
      sh: 'portcullis rollout history pinned-images',
      prints: [/^1 +Retired /m, /^2 +Serving /m],
    },
    {
      shows: 'rollout undo takes its bare name',
      sh: 'portcullis rollout undo pinned-images && portcullis rollout status pinned-images',
      prints: [/rolled back to revision 1$/m, /Active: revision 3 serves/],
    },
    {
      shows: 'a second undo explains itself',
      sh: 'portcullis rollout undo pinned-images && portcullis rollout status pinned-images',
      prints: [
        /rolled back to revision 2$/m,
        /^note: revision 3 was a rollback to 1, so this undid the rollback; .*--to-revision/m,
      ],
    },
    {
      shows: 'a table fits the terminal',
      sh: `script --quiet --return --command 'stty cols 80; portcullis get; portcullis get cap' /dev/null > table.txt
        grep -c pinned-images table.txt; tr -d '\\r' < table.txt | sed 's/…/./g' | awk 'length($0) > 80'`,
      prints: [/^2\n$/],
    },
    {
      shows: '--help is grouped, has examples, and fits the terminal',
      sh: 'portcullis --help; portcullis --help | awk \'length($0) > 80 {print "too long: " $0}\'',
      prints: [/^Write and test policies:$/m, /^Look at a cluster and change it:$/m, /^Examples:\n {2}portcullis /m],
      omits: /too long/,
    },
    {
      shows: 'kubectl portcullis is the same command',
      sh: 'kubectl portcullis get pinned-images && kubectl portcullis rollout history --help',
      prints: [/^pinned-images /m, /^Usage: kubectl portcullis rollout history/m],
    },
    {
      shows: 'what was made is removed',
      sh: 'portcullis delete pod/quick cap/pinned-images',
      prints: [/^pod\/quick deleted$/m, /pinned-images deleted$/m],
    },
  ],
};
