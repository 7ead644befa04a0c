-- SPDX-License-Identifier: GPL-2.0
-- A shop's year: who bought how much of what, by month, and who never came back.
create table customers (id integer primary key, name text, city text);
create table orders (id integer primary key, customer integer, day text, cents integer, note text);

with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
insert into customers select i, 'customer ' || (i * 7919 % 2000), 'city ' || (i % 37) from n;

with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into orders
select i, 1 + i * 7919 % 1900, date('2026-01-01', '+' || (i * 31 % 365) || ' days'),
	100 + i * 101 % 9999, printf('order %d of %s', i, hex(i * 12345)) from n;

create index orders_by_customer on orders (customer, day);

select count(*), sum(cents) from (
	select c.city, substr(o.day, 1, 7) as month, sum(o.cents) as cents
	from orders o join customers c on c.id = o.customer
	where o.note like '%3A%' or c.name glob '*7*'
	group by c.city, month order by cents desc);

select count(*) from customers c where not exists (select 1 from orders o where o.customer = c.id);

select max(gap) from (
	select julianday(o.day) - julianday(lag(o.day) over (partition by o.customer order by o.day))
	as gap from orders o);
