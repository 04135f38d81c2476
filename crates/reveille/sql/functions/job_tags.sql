-- The tags of a job as enqueue_items takes them, joined by line breaks; null for none. Refuses more
-- than 32 tags, and tags that are empty, longer than 128 bytes, or contain a line break.
-- locks: nothing
create or replace function {schema}.job_tags(in_tags text[])
returns text
language plpgsql
as $reveille$
begin
  if pg_catalog.cardinality(in_tags) > 32
    or exists (
      select
      from pg_catalog.unnest(in_tags) as tag
      where tag is null or tag = '' or pg_catalog.octet_length(tag) > 128 or pg_catalog.strpos(tag, E'\n') > 0
    )
  then
    raise exception 'a job has at most 32 tags of 1 to 128 bytes, without line breaks' using errcode = 'invalid_parameter_value';
  end if;
  return nullif(pg_catalog.array_to_string(in_tags, E'\n'), '');
end
$reveille$;

comment on function {schema}.job_tags(text[]) is 'Reveille: the tags of a job, checked';
