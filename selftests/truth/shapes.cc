// SPDX-License-Identifier: GPL-2.0
// For calls.c: virtual functions, of which one calls that of its base class, and templates; and
// exceptions.
#include "calls.h"

namespace shapes {

template <int N> FUNCTION void level()
{
	if constexpr (N > 2) {
		level<N - 1>();
		work(2);
	} else {
		work(3);
	}
}

struct Shape {
	virtual FUNCTION void draw(int units)
	{
		work(units);
	}
};

struct Circle : Shape {
	FUNCTION void draw(int units) override
	{
		level<3>();
		work(units);
	}
};

struct Square : Shape {
	FUNCTION void draw(int units) override
	{
		Shape::draw(units + 1);
		work(units);
	}
};

} // namespace shapes

FUNCTION void root_cxx(unsigned long rounds)
{
	shapes::Circle circle;
	shapes::Square square;
	shapes::Shape *volatile shape;

	while (rounds--) {
		shape = &circle;
		shape->draw(1);
		shape = &square;
		shape->draw(4);
	}
}

extern "C" {

FUNCTION void thrower(void)
{
	work(3);
	throw 1;
}

FUNCTION void passer(void)
{
	work(1);
	thrower();
	asm volatile("");
}

FUNCTION void catcher(void)
{
	try {
		passer();
	} catch (int) {
		work(2);
	}
}

FUNCTION void root_throw(unsigned long rounds)
{
	while (rounds--) {
		catcher();
		work(4);
	}
}

} // extern "C"
