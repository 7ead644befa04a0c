// SPDX-License-Identifier: GPL-2.0-or-later
/* See html_parts.h: names. */
#include <stdlib.h>

#include "export/html_parts.h"
#include "profile/escape.h"

void html_write_name(struct json *json, const char *key, const char *name)
{
	char *text = escape_text(name);

	escape_fit(text, NAME_MAX_COLUMNS);
	json_text(json, key, text);
	free(text);
}

void html_write_names(struct json *json, const char *key, const struct intern *names)
{
	json_line(json);
	json_array(json, key, '\n');
	for (size_t i = 0; i < names->nr; i++)
		html_write_name(json, NULL, names->texts[i]);
	json_end(json);
}
